"""One model against another: on average, and for most users.

The two questions have separate tests. Each verdict comes with an interval at the level of its
test: the interval excludes 0, or 1/2, exactly if the difference is significant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from srs_eval.metrics.means import Estimate
from srs_eval.metrics.significance import ALPHA, SignTest

# "best": every other eligible model is significantly worse; "leads": not every one is.
Decision = Literal[
    "best", "leads", "identical", "better", "worse", "not significantly different", "unknown"
]


@dataclass(frozen=True, slots=True)
class Answer:
    """Test of a difference, adjusted for multiple comparisons."""

    verdict: Decision  # Whether the model is significantly better or worse than the other at 1 %
    p_value: float  # Adjusted; NaN without a test
    factor: int  # Factor of the adjustment: the level is 1 - ALPHA / factor
    # Interval at that level: of the mean difference, or of the share of users without a tie for
    # whom the model is better
    lo: float
    hi: float

    @property
    def level(self) -> float:
        """Level of the interval."""
        return 1 - ALPHA / self.factor

    def mirrored(self, total: float) -> Answer:
        """Return the answer for the other model; both estimates add up to `total`."""
        opposite: dict[Decision, Decision] = {"better": "worse", "worse": "better"}
        verdict = opposite.get(self.verdict, self.verdict)
        lo, hi = total - self.hi, total - self.lo
        return Answer(verdict, self.p_value, self.factor, lo, hi)


@dataclass(frozen=True, slots=True)
class Standing:
    """One model against another."""

    difference: Estimate  # Mean of the model's scores less the other's
    counts: SignTest  # Users for whom the model is better and worse
    # Whether it differs on average, and for most users
    average: Answer
    users: Answer

    def mirrored(self) -> Standing:
        """Return the standing of the other model against this one."""
        return Standing(
            self.difference.mirrored(),
            self.counts.mirrored(),
            self.average.mirrored(0.0),
            self.users.mirrored(1.0),
        )

    @classmethod
    def of(
        cls,
        difference: Estimate,
        counts: SignTest,
        average: tuple[float, int],
        users: tuple[float, int],
        sign: float,
    ) -> Standing:
        """Judge a difference by the adjusted p-value and the factor of the adjustment of each test.

        `sign` is 1 if lower is better, -1 if higher is.
        """
        return cls(
            difference,
            counts,
            _on_average(difference, *average, sign),
            _for_most_users(counts, *users),
        )

    @classmethod
    def alone(cls, verdict: Decision) -> Standing:
        """Return the standing of the model that others are compared with."""
        none = Answer(verdict, math.nan, 1, math.nan, math.nan)
        return cls(Estimate(math.nan), SignTest(0, 0, 0), none, none)


def _on_average(difference: Estimate, p: float, factor: int, sign: float) -> Answer:
    interval = difference.interval(1 - ALPHA / factor)
    verdict = _verdict(p, is_zero=difference.is_zero, is_worse=sign * difference.mean > 0)
    return Answer(verdict, p, factor, *interval)


def _for_most_users(counts: SignTest, p: float, factor: int) -> Answer:
    is_zero = counts.tied > 0 and not counts.better + counts.worse
    verdict = _verdict(p, is_zero=is_zero, is_worse=counts.worse > counts.better)
    return Answer(verdict, p, factor, *counts.interval(1 - ALPHA / factor))


def _verdict(p: float, *, is_zero: bool, is_worse: bool) -> Decision:
    if math.isnan(p):
        return "unknown"
    if is_zero:
        return "identical"
    if p >= ALPHA:
        return "not significantly different"
    return "worse" if is_worse else "better"
