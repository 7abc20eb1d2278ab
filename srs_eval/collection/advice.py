"""What to do, decided from two kinds of evidence: the person's own reviews, and other people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from scipy.special import ndtr, ndtri

from srs_eval.collection.study import Study, difference
from srs_eval.collection.words import Change, log_loss
from srs_eval.stats.significance import LEVEL

# From which chance of being better on parameters are recommended, and up to which they are not.
_LIKELY, _UNLIKELY = 0.6, 0.4


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

    @classmethod
    def of(cls, own: Change | None, others: People | None, spread: float = math.inf) -> Belief:
        """Weight both by their precision, as a normal prior and a normal likelihood.

        The prior is another person of the kind: it has their mean, and their spread with the
        error of that mean; without others it is no change, with a spread. One's own standard
        error is that of the wider side of the 99 % interval, which allows for skewness and for
        few cards and days.
        """
        means, variances = [], []
        if others is not None:
            means.append(others.mean)
            variances.append(others.sd**2 * (1 + 1 / others.people))
        elif math.isfinite(spread):
            means.append(0.0)
            variances.append(spread**2)
        if own is not None and math.isfinite(own.error):
            means.append(own.share)
            variances.append(max(own.error, 1e-9) ** 2)
        if not means:
            return cls(own, others, math.nan, math.nan)
        precision = sum(1 / each for each in variances)
        mean = sum(m / v for m, v in zip(means, variances, strict=True)) / precision
        return cls(own, others, mean, precision**-0.5)

    @property
    def is_clear(self) -> bool:
        """Whether one's own reviews alone decide."""
        return self.own is not None and self.own.kind not in ("open", "unknown")

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

    @property
    def turn_on(self) -> bool:
        """Whether FSRS is off and should not be."""
        return self.fsrs is not None and self.fsrs.chance >= _LIKELY

    @property
    def leave_off(self) -> bool:
        """Whether FSRS is off and should stay so, whatever its parameters."""
        return self.fsrs is not None and not self.turn_on

    @property
    def still_needed(self) -> int | None:
        """How many more scored reviews would settle it, if the difference stays as it is.

        The width of an interval falls with the root of the reviews. None where it would take
        more than ten times as many as there are.
        """
        own = self.new.own
        if own is None or not math.isfinite(own.error) or own.share == 0:
            return None
        times = (own.error * float(ndtri((1 + LEVEL) / 2)) / own.share) ** 2
        return math.ceil(self.learnable * (times - 1)) if 1 < times <= 10 else None


def advise(study: Study) -> Advice:
    """Return what to do with a collection."""
    learnable = len(study.learnable)
    fsrs = _against_sm2(study)
    if not study.fitted.complete or not study.now.complete:
        return Advice("early", Belief.of(None, None), fsrs, learnable)
    own = Change.of(difference(study.fitted, study.now), log_loss(study.now))
    others = nearest(FITTED, learnable)
    new = Belief.of(own, others)
    if study.is_in_sample:
        # Others had the published parameters before. What a second fit changes is not known of
        # them: no more than the first, and for better or worse.
        new = Belief.of(own, None, others.sd if others else math.inf)
    return Advice(decide(new), new, fsrs, learnable)


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
    if study.settings is None or study.has_fsrs:
        return None
    own, old = None, study.others["anki_sm2"]
    if study.fitted.complete and old.complete:
        own = Change.of(difference(study.fitted, old), log_loss(old))
    return Belief.of(own, nearest(SM2, study.now.facts.reviews))
