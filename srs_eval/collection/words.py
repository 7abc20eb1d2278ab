"""Numbers and differences in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from scipy.special import ndtri

from srs_eval.collection.shares import Share
from srs_eval.results import Result
from srs_eval.stats.estimate import Estimate
from srs_eval.stats.significance import LEVEL
from srs_eval.text.console import percent

Kind = Literal["better", "worse", "noise", "same", "no_gain", "open", "unknown"]
# A gain that would be worth the trouble of new parameters.
_WORTH = 0.05
# An interval that is wider says nothing, and no end of one that is further away is a number.
WIDEST = 1.0
_UNKNOWN = "too few reviews to tell"


def between(lo: float, hi: float, *, sign: bool = False) -> str:
    """Format an interval in percent; "" where there is none."""
    if math.isnan(lo) or math.isnan(hi):
        return ""
    low, high = (percent(bound, sign=sign).removesuffix(" %") for bound in (lo, hi))
    return f"{low} to {high} %"


def between_or_not(lo: float, hi: float) -> str:
    """Format an interval in percent for a table; in words where it is too wide to say anything.

    >>> between_or_not(0.05, 0.1), between_or_not(-1.09, 0.52), between_or_not(math.nan, 0.1)
    ('5.0 to 10.0 %', 'too few reviews to tell', '-')
    """
    return _UNKNOWN if hi - lo > WIDEST else between(lo, hi) or "-"


def with_interval(share: Share) -> str:
    """Format an observed share with its interval."""
    return f"{percent(share.observed)} ({between(share.lo, share.hi)})"


@dataclass(frozen=True, slots=True)
class Change:
    """A paired difference of log loss, as a share of the log loss that it is held against."""

    # Decided by the interval alone, by default of 99 %. Where it holds 0, it is noise if it ends
    # within 5 % on both sides, no_gain if only the error may be larger than that, open if it may
    # be smaller than that, and unknown if it is wider than 1
    kind: Kind
    # Below 0 where the error is smaller
    share: float
    lo: float
    hi: float
    error: float  # A standard error: that of a normal interval as wide as the wider side

    @classmethod
    def of(cls, estimate: Estimate, against: float, level: float = LEVEL) -> Change:
        """Return a difference as a share of the log loss `against`."""
        lo, hi = estimate.interval(level)
        share, lo, hi = (value / against for value in (estimate.mean, lo, hi))
        error = max(hi - share, share - lo) / float(ndtri((1 + level) / 2))
        lo = max(lo, -1.0)  # no error is below 0
        kind: Kind = "open" if lo < -_WORTH else "noise" if hi <= _WORTH else "no_gain"
        if math.isnan(lo) or math.isnan(hi) or math.isnan(share):
            kind = "unknown"
        elif estimate.is_zero:
            kind = "same"
        elif hi < 0:
            kind = "better"
        elif lo > 0:
            kind = "worse"
        elif hi - lo > WIDEST:
            kind = "unknown"
        return cls(kind, share, lo, hi, error)

    @property
    def size(self) -> str:
        """The size of the difference in words, with its interval."""
        if self.kind == "unknown":
            return _UNKNOWN
        if self.kind == "same":
            return "the same predictions"
        if self.kind in ("noise", "no_gain", "open"):
            return f"{percent(self.share, sign=True)} ({between(self.lo, self.hi, sign=True)})"
        near, far = sorted((abs(self.lo), abs(self.hi)))
        direction = "smaller" if self.kind == "better" else "larger"
        if far >= WIDEST:
            return f"{direction} by {percent(near)} or more"
        return f"{percent(abs(self.share))} {direction} ({between(near, far)})"

    @property
    def of_error(self) -> str:
        """The size, as what it is a size of."""
        return self.size if self.kind in ("unknown", "same") else f"error {self.size}"

    @property
    def verdict(self) -> str:
        """The decision in a word or two."""
        return {
            "better": "better",
            "worse": "worse",
            "noise": "no difference worth having",
            "no_gain": "no better",
            "same": "the same",
            "open": _UNKNOWN,
            "unknown": _UNKNOWN,
        }[self.kind]


def log_loss(result: Result) -> float:
    """Return the log loss of the one user of a result; NaN without one."""
    return result.facts.metrics["log_loss"].mean_users


def explained(result: Result) -> tuple[float, float, float]:
    """Return what a result explains of the uncertainty of a constant, and its interval."""
    entropy = result.facts.metrics["normalized_entropy"]
    return 1 - entropy.mean_users, 1 - entropy.hi, 1 - entropy.lo
