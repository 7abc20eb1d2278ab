"""Everything that the report on a collection evaluates, fits and compares."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from srs_eval.algorithms.baselines import Average
from srs_eval.algorithms.combined import PerGroup
from srs_eval.algorithms.fsrs.current import CurrentParameters, as_fsrs6
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.schedulers import AnkiSm2
from srs_eval.collection.words import Change
from srs_eval.data.anki.collection import AnkiCollection, scheduled_now
from srs_eval.data.anki.groups import FsrsSettings, read_fsrs_settings
from srs_eval.data.reviews import BoolArray, FloatArray, IntArray, Reviews, User
from srs_eval.errors import ConfigError, FitSkipped
from srs_eval.evaluation.evaluate import EvaluateUser
from srs_eval.evaluation.scoring import ScoredUser, Scores, score_user, summarise_users
from srs_eval.fitting import FittedModels, fit
from srs_eval.inputs import source
from srs_eval.metrics.means import Estimate, MetricSummary, clustered_mean
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.predictions import Predictions, select
from srs_eval.metrics.scores import log_loss, normalized_entropy
from srs_eval.metrics.tally import log_losses
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.protocol.task import Task

_SEED = 2026
_ENDED = {"fallback": "fell back", "failed": "failed", "skipped": "skipped"}
_PANEL = Panel([log_loss, normalized_entropy], pooled=False)
# Reviews that can be learned from that are needed to score any.
FEWEST = SrsBenchmark().folds + 1
# Of parameters that a collection has.
MAY = "perhaps fitted to these reviews"


@dataclass(frozen=True, slots=True)
class Result:
    """An algorithm, evaluated on the log."""

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
    def reason(self) -> str:
        """Why a fold is missing."""
        return next((fit.reason for fit in self.user.fits if not fit.predicts), "nothing to score")

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
    # Days after its last answer at which each card is due, by its number
    scheduled: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, path: Path, options: Mapping[str, Any]) -> Study:
        """Read a collection, or a table of reviews with the arguments of its reader."""
        logs = source(path, **options)
        users = logs.users()
        if len(users) != 1:
            raise ConfigError(f"{path} has {len(users)} users: name one, as in data.users=[ann]")
        if isinstance(logs, AnkiCollection):
            found = logs.read_with_table(users[0])
            read = OneLog(logs.name, logs.location, found.reviews)
            return cls(read, read_fsrs_settings(path), scheduled_now(found.revlog))
        log = logs.read(users[0])
        log = replace(log, notes=(*log.notes, *getattr(logs, "remarks", tuple)()))
        return cls(OneLog(logs.name, logs.location, log))

    @property
    def log(self) -> Reviews:
        """All reviews of the log."""
        return self.source.log

    @cached_property
    def task(self) -> Task | None:
        """Folds of the log; None if too few reviews can be scored."""
        return None if isinstance(self._split, FitSkipped) else self._split

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
        if not isinstance(self._split, FitSkipped):
            return len(self.learnable)
        out = (self._split.dropped, self._split.unscored)
        return len(self.log) - sum(sum(each.values()) for each in out)

    def seen(self, preset: int | None = None) -> float:
        """Return the share of reviews on later days that are scored or learned from."""
        later, used = self.log.elapsed_days > 0, len(self.learnable)
        if preset is not None:
            later, used = later & (self.log.preset == preset), self.presets[preset]
        return used / max(1, int(later.sum()))

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
        # `left_out` names lists of no known version
        return {number: as_fsrs6(stored.get(number, ())) for number in self.presets}

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
    def yours(self) -> str:
        """Whose parameters new ones are held against, in words."""
        return "the parameters that you have" if self.is_in_sample else "the default parameters"

    @property
    def longest(self) -> int:
        """Days of the longest interval that was reviewed."""
        return int(self.log.elapsed_days.max(initial=0))

    @cached_property
    def default(self) -> Result:
        """FSRS-6 with the published default parameters."""
        return self.evaluated(Fsrs6(fit="default"))

    @cached_property
    def now(self) -> Result:
        """FSRS-6 with the parameters that the collection has now, or else the default ones."""
        if not self.current:
            return self.default
        return self.evaluated(CurrentParameters(self.current))

    @cached_property
    def one(self) -> Result:
        """FSRS-6 fitted to all presets together."""
        return self.evaluated(Fsrs6())

    @cached_property
    def several(self) -> Result | None:
        """FSRS-6 fitted to each preset that has enough reviews; None if there is only one."""
        if len(self.presets) < 2:
            return None
        return self.evaluated(PerGroup(Fsrs6()))

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
        return self.evaluated(AnkiSm2(fit="default"))

    def against_now(self, result: Result) -> Change:
        """Return the error of a result against that with the parameters of now."""
        return Change.of(difference(result, self.now), self.now.log_loss)

    @cached_property
    def constant(self) -> Change:
        """The error of fitted parameters against that of always saying the average so far."""
        flat = self.evaluated(Average())
        return Change.of(difference(self.fitted, flat), flat.log_loss)

    @cached_property
    def scored(self) -> Predictions | None:
        """Predictions with the parameters of now, in time order; None if nothing is scored."""
        return self.now.predictions

    def group(self, name: str) -> IntArray:
        """Return the preset or deck of each scored review; -1 if it is not known."""
        scored = self.scored
        assert scored is not None
        column: IntArray | None = getattr(self.log, name)
        if column is None:
            return np.full(len(scored), -1)
        return column[np.searchsorted(self.log.row, scored.row)]

    def evaluated(self, algorithm: Any) -> Result:
        """Evaluate an algorithm on the collection."""
        one = EvaluateUser(self.source, algorithm, SrsBenchmark(), _SEED, curves=0)
        user = score_user(one(self.log.user), _PANEL)
        predictions = None
        if user.is_complete and user.predictions is not None:
            order = np.argsort(user.predictions.row, kind="stable")
            predictions = select(user.predictions, order)
        reviews, values = np.array([user.reviews]), np.array([user.values])
        scores = Scores((user.user,), reviews, (user.rows,), tuple(_PANEL.names), values)
        over = summarise_users(scores, _PANEL, lambda: filter(None, [user.predictions]))
        return Result(user, over.metrics, predictions)


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
