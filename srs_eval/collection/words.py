"""Numbers and differences in words."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Any, Literal

from scipy.special import ndtri

from srs_eval.comparison.words import percent
from srs_eval.metrics.means import Estimate
from srs_eval.metrics.significance import LEVEL

Kind = Literal["better", "worse", "noise", "same", "no_gain", "open", "unknown"]
# A gain that would be worth the trouble of new parameters.
_WORTH = 0.05
# An interval that is wider says nothing, and no end of one that is further away is a number.
_WIDEST = 1.0
_SMALLER = ("smaller", "larger")
_UNKNOWN = "too few reviews to tell"


def between(lo: float, hi: float) -> str:
    """Format an interval in percent; "" where there is none."""
    if math.isnan(lo) or math.isnan(hi):
        return ""
    return f"{percent(lo).removesuffix(' %')} to {percent(hi)}"


def changed(share: float, lo: float, hi: float, words: tuple[str, str] = _SMALLER) -> str:
    """Format a change and its interval, all in words of one direction.

    >>> changed(-0.04, -0.14, 0.05), changed(-0.04, -0.14, -0.01)
    ('4.0 % smaller (from 14.0 % smaller to 5.0 % larger)', '4.0 % smaller (1.0 to 14.0 %)')
    >>> changed(0.3, math.nan, math.nan, ("fewer", "more"))
    '30.0 % more'
    """
    value, low, high = (f"{percent(abs(each))} {words[each > 0]}" for each in (share, lo, hi))
    if math.isnan(lo) or math.isnan(hi):
        return value
    if lo < 0 < hi:
        return f"{value} (from {low} to {high})"
    return f"{value} ({between(*sorted((abs(lo), abs(hi))))})"


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
        found = cls.within(share, lo, hi, level)
        return replace(found, kind="same") if estimate.is_zero else found

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
            near = percent(min(abs(self.lo), abs(self.hi)))
            return f"{_SMALLER[self.kind == 'worse']} by {near} or more"
        return changed(self.share, self.lo, self.hi)

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


def override(key: str, value: Any) -> str:
    r"""Return a word of a command line that Hydra reads as a key with a value.

    >>> print(override("data.path", "my file"), override("data.decks", ["語", 'a"b']))
    data.path="my file" data.decks=["語","a\"b"]
    """
    return f"{key}={_quoted(value)}"


def _quoted(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_quoted, value))}]"
    if not isinstance(value, str):
        return {None: "null", True: "true", False: "false"}.get(value, str(value))
    if re.fullmatch(r"[A-Za-z_./][\w./*-]*", value, re.ASCII):
        return value
    # A backslash counts only before a quotation mark, and at the end
    text = re.sub(r'(\\*)("|$)', lambda m: 2 * m[1] + "\\" * bool(m[2]) + m[2], value)
    return f'"{text}"'
