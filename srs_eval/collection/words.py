"""Numbers and differences in words."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from scipy.special import ndtri

from srs_eval.comparison.words import percent
from srs_eval.metrics.means import Estimate
from srs_eval.metrics.significance import LEVEL

Kind = Literal["better", "worse", "noise", "same", "no_gain", "open", "unknown"]
# A gain that would be worth the trouble of new parameters.
_WORTH = 0.05
# An interval that is wider says nothing, and no end of one that is further away is a number.
_WIDEST = 1.0
_SIDES = ("smaller", "larger")
_UNKNOWN = "too few reviews to tell"


def changed(share: float, lo: float = math.nan, hi: float = math.nan) -> str:
    """Format a change of error and its interval, all in words of one direction.

    >>> changed(-0.04, -0.14, 0.05), changed(-0.04, -0.14, -0.01)
    ('4.0 % smaller (from 14.0 % smaller to 5.0 % larger)', '4.0 % smaller (1.0 to 14.0 %)')
    >>> changed(0.3)
    '30.0 % larger'
    """
    value, low, high = (f"{percent(abs(each))} {_SIDES[each > 0]}" for each in (share, lo, hi))
    if math.isnan(lo) or math.isnan(hi):
        return value
    if lo < 0 < hi:
        return f"{value} (from {low} to {high})"
    near, far = sorted((abs(lo), abs(hi)))
    return f"{value} ({percent(near).removesuffix(' %')} to {percent(far)})"


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
        share, lo, hi = (each / against for each in (estimate.mean, *estimate.interval(level)))
        change = cls.within(share, lo, hi, level)
        return replace(change, kind="same") if estimate.is_zero else change

    @classmethod
    def within(cls, share: float, lo: float, hi: float, level: float = LEVEL) -> Change:
        """Return a change with its interval."""
        error = max(hi - share, share - lo) / float(ndtri((1 + level) / 2))
        lo = max(lo, -1.0)  # no error is below 0
        kind: Kind = "open" if lo < -_WORTH else "noise" if hi <= _WORTH else "no_gain"
        if math.isnan(lo) or math.isnan(hi) or math.isnan(share):
            kind = "unknown"
        elif hi < 0:
            kind = "better"
        elif lo > 0:
            kind = "worse"
        elif hi - lo > _WIDEST:
            kind = "unknown"
        return cls(kind, share, lo, hi, error)

    @property
    def size(self) -> str:
        """The size of the difference in words, with its interval."""
        if self.kind == "unknown":
            return _UNKNOWN
        if self.kind == "same":
            return "the same predictions"
        if max(abs(self.lo), abs(self.hi)) >= _WIDEST and self.kind in ("better", "worse"):
            nearer_end = percent(min(abs(self.lo), abs(self.hi)))
            return f"{_SIDES[self.kind == 'worse']} by {nearer_end} or more"
        return changed(self.share, self.lo, self.hi)
