"""What to do, decided from two kinds of evidence: the person's own reviews, and other people."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from scipy.special import ndtr, ndtri

from srs_eval.collection.study import Study, difference, losses
from srs_eval.collection.words import Change
from srs_eval.metrics.significance import ALPHA

# From which chance of being better on parameters are recommended, and up to which they are not.
_LIKELY, _UNLIKELY = 0.6, 0.4
# Of the reviews on later days, the share that speaks for all of them.
HALF = 0.5


@dataclass(frozen=True, slots=True)
class People:
    """How one model changed the error of other people against another one."""

    reviews: int  # Fewest reviews of a log that this says something about
    people: int
    better: int  # People whose error became smaller
    mean: float  # Change of their mean error, as a share of what it was

    @property
    def sd(self) -> float:
        """Spread over people: of a normal distribution with this mean and share of people below 0.

        It holds the noise of each person's score too, so that other people count for less than
        they could.
        """
        return self.mean / float(ndtri(1 - (self.better + 0.5) / (self.people + 1)))


# FSRS-6 fitted to the first reviews of a log, against the published parameters, on the next 200
# later-day reviews: 47 logs of Anki and SuperMemo that are not public, see docs/collection.md.
# benchmarks/other_people.py computes the same of other logs.
FITTED = (
    People(25, 47, 29, 0.3121 / 0.3317 - 1),
    People(50, 45, 31, 0.3028 / 0.3233 - 1),
    People(100, 42, 27, 0.3027 / 0.3207 - 1),
    People(200, 39, 27, 0.3022 / 0.3140 - 1),
    People(500, 32, 23, 0.2767 / 0.2962 - 1),
    People(1000, 26, 19, 0.2906 / 0.3108 - 1),
)
# FSRS-5 against SM-2 on the users of the public srs-benchmark, by number of scored reviews: see
# benchmarks/other_people.py. The first row speaks for smaller logs as well.
SM2 = (
    People(0, 178, 172, -0.637),
    People(1000, 1272, 1255, -0.574),
    People(3000, 3020, 3010, -0.550),
    People(10_000, 2628, 2626, -0.491),
    People(30_000, 2901, 2898, -0.394),
)


@dataclass(frozen=True, slots=True)
class Belief:
    """A relative change of error, from one's own reviews and those of other people."""

    own: Change | None  # None where nothing of one's own is scored
    others: People | None  # None where nothing is known of others in this position
    mean: float  # NaN without any evidence
    sd: float
    seen: float = 1.0  # Share of one's reviews on later days that can be judged

    @classmethod
    def of(
        cls,
        own: Change | None,
        others: People | None,
        spread: float = math.inf,
        seen: float = 1.0,
    ) -> Belief:
        """Weight both by their precision, as a normal prior and a normal likelihood.

        The prior is another person of the kind: it has their mean, and their spread with the
        error of that mean; without others it is no change, with a spread. One's own standard
        error is that of the wider side of the 99 % interval, which allows for skewness and for
        few cards and days. Reviews that cannot be judged may differ from those that can by as
        much as people do.
        """
        spread = others.sd if others is not None else spread
        means, variances = [], []
        if math.isfinite(spread):
            means.append(others.mean if others is not None else 0.0)
            variances.append(spread**2 * (1 + 1 / others.people if others is not None else 1))
        if own is not None and math.isfinite(own.error):
            unseen = (1 - seen) * spread if math.isfinite(spread) else 0.0
            means.append(own.share)
            variances.append(max(own.error, 1e-9) ** 2 + unseen**2)
        if not means:
            return cls(own, others, math.nan, math.nan, seen)
        precision = sum(1 / each for each in variances)
        mean = sum(m / v for m, v in zip(means, variances, strict=True)) / precision
        return cls(own, others, mean, precision**-0.5, seen)

    @property
    def is_clear(self) -> bool:
        """Whether one's own reviews alone decide."""
        if self.own is None or self.seen < HALF:
            return False
        return self.own.kind not in ("open", "unknown")

    @property
    def chance(self) -> float:
        """Probability that the error is smaller; NaN without any evidence."""
        return float(ndtr(-self.mean / self.sd))


Action = Literal["paste", "keep", "open", "early"]


@dataclass(frozen=True, slots=True)
class Advice:
    """The record that every sentence on what to do is made from."""

    # paste: take the fitted parameters. keep: they are not worth it. open: it cannot be told.
    # early: nothing can be fitted yet
    action: Action
    new: Belief  # Fitted parameters against those of now
    # FSRS against SM-2; None where FSRS is on, or it is not known which scheduler there is
    fsrs: Belief | None
    learnable: int  # Reviews that a fit to the whole log learns from
    # What to do with each of several presets, "paste", "keep" or "open", and why
    presets: Mapping[int, tuple[Action, Belief]] = field(default_factory=dict)

    @property
    def differs(self) -> bool:
        """Whether one answer would be wrong for some preset."""
        return any(action != self.action for action, _ in self.presets.values())

    @property
    def pastes(self) -> bool:
        """Whether a new list is recommended for any preset."""
        return "paste" in ([each for each, _ in self.presets.values()] or [self.action])

    def keeps(self, preset: int) -> bool:
        """Whether a preset keeps the parameters that it has."""
        return self.presets.get(preset, (self.action,))[0] != "paste"

    @property
    def turn_on(self) -> bool:
        """Whether FSRS is off and should not be."""
        return self.fsrs is not None and self.fsrs.chance >= _LIKELY

    @property
    def leave_off(self) -> bool:
        """Whether FSRS is off and should stay so, whatever its parameters."""
        return self.fsrs is not None and not self.turn_on


def advise(study: Study) -> Advice:
    """Return what to do with a collection."""
    learnable = len(study.learnable)
    fsrs = _against_sm2(study)
    if not study.fitted.complete or not study.now.complete:
        return Advice("early", Belief.of(None, None), fsrs, learnable)
    new = _belief(
        study.against_now(study.fitted), learnable, study.seen(), refit=study.is_in_sample
    )
    action = decide(new)
    return Advice(action, new, fsrs, learnable, dict(_of_presets(study, action)))


def _belief(own: Change, reviews: int, seen: float, *, refit: bool) -> Belief:
    others = nearest(FITTED, reviews)
    if refit:
        # Others had the published parameters before. What a second fit changes is not known of
        # them: no more than the first, and for better or worse.
        return Belief.of(own, None, others.sd if others else math.inf, seen)
    return Belief.of(own, others, seen=seen)


def _of_presets(study: Study, action: Action) -> Iterator[tuple[int, tuple[Action, Belief]]]:
    """Decide on each of several presets as on all, and like all where its reviews do not tell."""
    scored = study.scored
    if len(study.presets) < 2 or scored is None:
        return
    loss, level = losses(scored), 1 - ALPHA / len(study.presets)
    for preset, reviews in study.presets.items():
        rows = study.group("preset") == preset
        before = float(loss[rows].sum()) / max(1, int(rows.sum()))
        own = Change.of(difference(study.fitted, study.now, rows), before, level)
        belief = _belief(own, reviews, study.seen(preset), refit=preset in study.stored)
        decided = decide(belief)
        undecided = decided == "open" and not belief.chance <= _UNLIKELY
        yield preset, (action if undecided else decided, belief)


def nearest(table: Sequence[People], reviews: int) -> People | None:
    """Return the row for the most reviews that a log has; None if it has fewer than any."""
    return next((row for row in reversed(table) if row.reviews <= reviews), None)


def decide(new: Belief) -> Action:
    """Decide on parameters: one's own reviews alone where they are clear, else by the chance."""
    if new.own is not None and new.is_clear:
        return "paste" if new.own.kind == "better" else "keep"
    if new.chance >= _LIKELY:
        return "paste"
    return "keep" if new.chance <= _UNLIKELY and new.others is not None else "open"


def _against_sm2(study: Study) -> Belief | None:
    """Return what FSRS is worth where Anki schedules by SM-2; None where it does not."""
    if not study.is_off:
        return None
    own, old = None, study.sm2
    if study.fitted.complete and old.complete:
        own = Change.of(difference(study.fitted, old), old.log_loss)
    return Belief.of(own, nearest(SM2, study.now.reviews))
