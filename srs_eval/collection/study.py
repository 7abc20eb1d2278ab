"""Everything that the report on a collection evaluates, fits and compares."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from srs_eval.algorithms.combined.per_group import PerGroup
from srs_eval.algorithms.fsrs.current import CurrentParameters, current_parameters
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.schedulers.sm2 import AnkiSm2
from srs_eval.collection.words import Change
from srs_eval.data.anki.presets import FsrsSettings
from srs_eval.data.reviews import (
    BoolArray,
    FloatArray,
    IntArray,
    Reviews,
    User,
)
from srs_eval.errors import FitSkipped
from srs_eval.evaluation.evaluate import EvaluateUser
from srs_eval.evaluation.scoring import EvaluateAndScore, ScoredUser, Scores, summarise_users
from srs_eval.fitting import FittedModels, fit
from srs_eval.metrics.means import Estimate, clustered_mean
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.predictions import Predictions, select
from srs_eval.metrics.scores import log_loss, normalized_entropy
from srs_eval.metrics.summary import MetricSummary
from srs_eval.metrics.tally import log_losses
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.protocol.task import Task

_SEED = 2026
_ENDED = {"fallback": "fell back", "failed": "failed", "skipped": "skipped"}
_PANEL = Panel([log_loss, normalized_entropy], pooled=False)
# Reviews that can be learned from that are needed to score any.
FEWEST = SrsBenchmark.folds + 1
# Of parameters that a collection has.
MAY = "perhaps fitted to these same reviews"


@dataclass(frozen=True, slots=True)
class Result:
    """An algorithm, evaluated on the log."""

    name: str
    user: ScoredUser
    metrics: Mapping[str, MetricSummary]
    predictions: Predictions | None  # In time order; None where a fold is missing

    @property
    def complete(self) -> bool:
        """Whether no fold is missing."""
        return self.user.is_complete

    @property
    def reviews(self) -> int:
        """Number of scored reviews."""
        return self.user.reviews

    @property
    def log_loss(self) -> float:
        """The log loss; NaN where a fold is missing."""
        return self.metrics["log_loss"].mean_users

    @property
    def against_average(self) -> Change:
        """The error, against that of always saying the average of the reviews."""
        entropy = self.metrics["normalized_entropy"]
        return Change.within(entropy.mean_users - 1, entropy.lo - 1, entropy.hi - 1)

    @property
    def exceptions(self) -> str:
        """Numbers of irregular fits, such as ``2 of 5 fits fell back``; "" if there are none."""
        fits = self.user.fits
        ends = Counter(_ENDED[fit.status] for fit in fits if fit.status != "ok")
        ends["did not converge"] = sum(fit.predicts and not fit.converged for fit in fits)
        return ", ".join(f"{n} of {len(fits)} fits {how}" for how, n in ends.items() if n)


@dataclass(frozen=True, slots=True)
class OneLog:
    """A source with one log, which is read once."""

    name: str
    location: str
    log: Reviews

    def users(self) -> Sequence[User]:
        return (self.log.user,)

    def read(self, user: User) -> Reviews:
        return self.log


@dataclass(frozen=True)
class Study:
    """A collection, and what is computed of it when it is first used."""

    source: OneLog  # The reviews
    # FSRS settings of the collection; None for logs of other kinds
    settings: FsrsSettings | None = None
    # [n]: Days after its last answer at which each review of the log was due; -1 if that is not
    # known
    due: IntArray | None = None
    # Days after its last answer at which each card is due, by its number
    scheduled: Mapping[int, int] = field(default_factory=dict)
    # Options of python -m srs_eval with which it reads the same log
    reading: Sequence[str] = ()

    @property
    def log(self) -> Reviews:
        """All reviews of the log."""
        return self.source.log

    @cached_property
    def task(self) -> Task | None:
        """Folds of the log; None if too few reviews can be scored."""
        return None if isinstance(self._split, FitSkipped) else self._split

    @property
    def skipped(self) -> FitSkipped | None:
        """Why nothing can be scored; None if something is."""
        return self._split if isinstance(self._split, FitSkipped) else None

    @cached_property
    def _split(self) -> Task | FitSkipped:
        try:
            return SrsBenchmark()(self.log, same_day=True)
        except FitSkipped as skipped:
            return skipped

    @cached_property
    def learnable(self) -> IntArray:
        """Rows of the task that are scored or learned from."""
        if self.task is None:
            return np.empty(0, np.int64)
        last = self.task.folds[-1]
        return np.concatenate([last.train, last.test])

    @property
    def can_learn(self) -> int:
        """How many reviews could be learned from, also where they are too few to score any."""
        if self.skipped is None:
            return len(self.learnable)
        out = (self.skipped.dropped, self.skipped.unscored)
        return len(self.log) - sum(sum(each.values()) for each in out)

    def seen(self, preset: int | None = None) -> float:
        """Return the share of reviews on later days that are scored or learned from."""
        later, used = self.log.elapsed_days > 0, len(self.learnable)
        if preset is not None:
            later, used = later & (self.log.preset == preset), self.presets[preset]
        return used / max(1, int(later.sum()))

    @property
    def first_ratings(self) -> list[int]:
        """Number of cards whose first rating was Again, Hard, Good and Easy."""
        first = self.log.rating[self.log.elapsed_days < 0]
        return [int((first == rating).sum()) for rating in (1, 2, 3, 4)]

    def title(self, preset: int) -> str:
        """Return the name of a preset."""
        return self.log.titles.get("preset", {}).get(preset, f"preset {preset}")

    @property
    def is_off(self) -> bool:
        """Whether Anki schedules this collection by SM-2."""
        return self.settings is not None and not self.settings.enabled

    @cached_property
    def presets(self) -> dict[int, int]:
        """Number of reviews that are scored or learned from of each preset, largest first.

        All reviews count where none can be scored.
        """
        if self.log.preset is None:
            return {}
        numbers = self.log.preset
        if self.task is not None and self.task.reviews.preset is not None:
            numbers = self.task.reviews.preset[self.learnable]
        names, counts = np.unique(numbers[numbers >= 0], return_counts=True)
        order = np.argsort(-counts, kind="stable")
        return dict(zip(names[order].tolist(), counts[order].tolist(), strict=True))

    @cached_property
    def current(self) -> dict[int, tuple[float, ...]]:
        """Parameters of FSRS-6 that Anki uses now for each preset of the log, if it does."""
        if self.settings is None or self.is_off:
            return {}
        stored = {number: preset.parameters for number, preset in self.settings.presets.items()}
        # lists of no known version are named in the section on doubts
        return current_parameters({number: stored.get(number, ()) for number in self.presets})

    @property
    def is_in_sample(self) -> bool:
        """Whether the parameters of now may have been fitted to the reviews that score them."""
        return CurrentParameters(self.current).in_sample

    @property
    def stored(self) -> dict[int, tuple[float, ...]]:
        """The parameters of now that are not the default ones, by preset."""
        own = {preset: CurrentParameters({preset: w}) for preset, w in self.current.items()}
        return {preset: self.current[preset] for preset, each in own.items() if each.in_sample}

    @property
    def caution(self) -> str:
        """What sentences about the parameters of now say behind them; "" where it is not so."""
        return f" ({MAY})" if self.is_in_sample else ""

    @property
    def whose(self) -> str:
        """FSRS as it is judged, in words: whose parameters it has."""
        if self.is_in_sample:
            return f"FSRS with your parameters{self.caution}"
        if self.is_off:
            return "FSRS with its default parameters (it is off in this collection)"
        return "FSRS with its default parameters"

    @cached_property
    def default(self) -> Result:
        """FSRS-6 with the published default parameters."""
        return self.evaluated("default", Fsrs6(fit="default"))

    @cached_property
    def now(self) -> Result:
        """FSRS-6 with the parameters that the collection has now, or else the default ones."""
        if not self.current:
            return self.default
        return self.evaluated("current", CurrentParameters(self.current))

    @cached_property
    def one(self) -> Result:
        """FSRS-6 fitted to all presets together."""
        return self.evaluated("fitted", Fsrs6())

    @cached_property
    def several(self) -> Result | None:
        """FSRS-6 fitted to each preset that has enough reviews; None if there is only one."""
        if len(self.presets) < 2:
            return None
        return self.evaluated("fitted_per_preset", PerGroup(Fsrs6()))

    @cached_property
    def separate(self) -> Estimate:
        """Log loss of one fit for all presets, less that of fits for each preset."""
        return Estimate(math.nan) if self.several is None else difference(self.one, self.several)

    @property
    def fitted(self) -> Result:
        """The fits that are recommended, evaluated on reviews that they have not seen.

        Those for each preset, if they predict significantly better than one for all.
        """
        if self.several is not None and self.separate.interval()[0] > 0:
            return self.several
        return self.one

    @cached_property
    def final(self) -> FittedModels:
        """The fit that is recommended, to all reviews."""
        name = "per_group" if self.fitted is self.several else "fsrs6"
        return fit(name, self.source, progress=False)

    @cached_property
    def sm2(self) -> Result:
        """Anki's older scheduler, SM-2, not fitted."""
        return self.evaluated("anki_sm2", AnkiSm2(fit="default"))

    @cached_property
    def scored(self) -> Predictions | None:
        """Predictions with the parameters of now, in time order; None if nothing is scored."""
        return self.now.predictions

    def group(self, name: str) -> IntArray:
        """Return the preset, deck or due day of each scored review; -1 if it is not known."""
        scored = self.scored
        assert scored is not None
        column: IntArray | None = self.due if name == "due" else getattr(self.log, name)
        if column is None:
            return np.full(len(scored), -1)
        place = np.searchsorted(self.log.row, scored.row)
        return column[place]

    def evaluated(self, name: str, algorithm: Any) -> Result:
        """Evaluate an algorithm on the collection."""
        one = EvaluateUser(self.source, algorithm, SrsBenchmark(), _SEED, curves=0)
        user = EvaluateAndScore(one, _PANEL)(self.log.user)
        predictions = None
        if user.is_complete and user.predictions is not None:
            order = np.argsort(user.predictions.row, kind="stable")
            predictions = select(user.predictions, order)
        reviews, values = np.array([user.reviews]), np.array([user.values])
        scores = Scores((user.user,), reviews, (user.rows,), tuple(_PANEL.names), values)
        over = summarise_users(scores, _PANEL, lambda: filter(None, [user.predictions]))
        return Result(name, user, over.metrics, predictions)


def reason_of(result: Result) -> str:
    """Return why a result lacks a fold."""
    reasons = (fit.reason for fit in result.user.fits if not fit.predicts)
    return next(reasons, "no review can be scored")


def losses(predictions: Predictions) -> FloatArray:
    """Return the log loss of each review."""
    return log_losses(predictions.p, predictions.recalled)


def difference(ours: Result, theirs: Result, rows: BoolArray | None = None) -> Estimate:
    """Estimate the difference of log loss of two results on the same reviews, or some of them."""
    a, b = ours.predictions, theirs.predictions
    if a is None or b is None:
        return Estimate(math.nan)
    assert a.day is not None
    loss, other = losses(a), losses(b)
    chosen = np.ones(len(loss), np.bool_) if rows is None else rows
    largest = float(max(loss.max(), other.max()))
    return clustered_mean((loss - other)[chosen], a.card[chosen], a.day[chosen], size=largest)
