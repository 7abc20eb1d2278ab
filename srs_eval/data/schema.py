"""The one place where columns become a validated `Reviews`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from srs_eval.cards import FIRST, previous_review, since_previous
from srs_eval.data.columns import numbers, violations, whole_numbers
from srs_eval.errors import ReviewLogError, Violation
from srs_eval.nouns import COLUMNS, BoolArray, IntArray, Reviews, User

_CENTURY_DAYS = 36_525
_LATEST_DAY = 3_000_000  # Julian day numbers are below it; dates like 20240329 and seconds are not
_NOT_DAYS = (
    "day numbers (at most 3,000,000, and at most 100 years apart; give seconds, milliseconds or "
    "dates as times)"
)
_FIRST_EXPECTED = "-1 at a card's first review"
_LATER_EXPECTED = "0 or more after a card's first review"


def reviews_from_columns(
    *,
    user: User,
    source: str,  # file or table the columns come from, named in errors
    left_out: Mapping[str, int] | None = None,  # rows that are not reviews, counted by reason
    notes: Sequence[str] = (),  # remarks on the log for the person
    row_name: Callable[[int], str] | None = None,  # of row i (from 0) in errors; else ``row i+1``
    column_names: Mapping[str, str] | None = None,  # of the source, in errors; else those below
    problems: Sequence[Violation] = (),  # what is wrong besides
    hint: str = "",  # what to do about that
    **columns: Any,
) -> Reviews:
    """Build one user's log from columns [n] in time order, checking all of it once.

    The columns are those of `srs_eval.nouns.COLUMNS`; `card`, `rating` and `day` are needed.
    Elapsed days are derived from `card` and `day` if absent, and compared with them if given. Raise
    `ReviewLogError` with every kind of violation found, the first rows of each, and how many more.

    >>> log = reviews_from_columns(
    ...     user=1, source="example", card=[7, 9, 7], rating=[3, 1, 4], day=[0, 0, 5]
    ... )
    >>> log.elapsed_days.tolist()
    [-1, -1, 5]
    """
    given = {name: columns.pop(name, None) for name in COLUMNS}
    lacking = [name for name, each in COLUMNS.items() if each.is_needed and given[name] is None]
    if columns or lacking:
        raise TypeError(f"a log has no columns {[*columns]}, and needs {lacking}")
    given = {name: values for name, values in given.items() if values is not None}
    lengths = {name: len(values) for name, values in given.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        what = f"the columns differ in length: {listed} rows"
        raise ReviewLogError(source, [Violation(what, "length")])
    n = lengths["card"]
    if not n:
        nothing = Violation("there are no reviews in it", "empty")
        raise ReviewLogError(source, problems or [nothing], hint)
    check = _Check(row_name or (lambda row: f"row {row + 1}"), column_names or {})
    for name, values in given.items():
        check.read(name, values)
    previous = previous_review(check.values["card"])
    derived = since_previous(check.values["day"], previous)
    check.order_and_intervals(derived, first=previous == FIRST)
    check.ranges()
    if problems or check.violations:
        raise ReviewLogError(source, [*problems, *check.violations], hint)
    return Reviews(
        user=user,
        elapsed=np.maximum(derived, 0).astype(np.float64),
        row=np.arange(n, dtype=np.int64),
        left_out=dict(left_out or {}),
        notes=tuple(notes),
        **{**check.values, "elapsed_days": derived},
    )


@dataclass(slots=True)
class _Check:
    """Collects the columns that could be read, and everything wrong with them."""

    row_name: Callable[[int], str]
    column_names: Mapping[str, str]
    violations: list[Violation] = field(default_factory=list)
    given: dict[str, Any] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    readable: dict[str, BoolArray] = field(default_factory=dict)

    def read(self, name: str, values: Any) -> None:
        """Convert one column, and note the values that are not numbers of its kind."""
        self.given[name] = values
        if COLUMNS[name].is_whole:
            self.values[name], bad = whole_numbers(values)
            expected = "a whole number"
        else:
            self.values[name] = numbers(values)
            bad, expected = ~np.isfinite(self.values[name]), "a number"
        self._report(name, bad, expected, "wrong_type")
        self.readable[name] = ~bad

    def order_and_intervals(self, derived: IntArray, *, first: BoolArray) -> None:
        """Check that days never decrease and that given intervals follow from them."""
        if not self.readable["card"].all():
            return
        if "elapsed_seconds" in self.values:
            seconds = self.values["elapsed_seconds"]
            self._require("elapsed_seconds", ~first | (seconds == FIRST), _FIRST_EXPECTED)
            self._require("elapsed_seconds", first | (seconds >= 0), _LATER_EXPECTED)
        if not self.readable["day"].all():
            return
        day = self.values["day"]
        plausible = (day >= -_LATEST_DAY) & (day <= _LATEST_DAY)
        plausible &= day - day[plausible].min(initial=_LATEST_DAY) <= _CENTURY_DAYS
        self._require("day", plausible, _NOT_DAYS)
        if not plausible.all():
            return
        backwards = np.r_[False, day[1:] < day[:-1]]
        in_order = "no day before that of the row above (time order)"
        self._require("day", ~backwards, in_order, "order")
        if "elapsed_days" in self.values:
            stated = self.values["elapsed_days"]
            self._require("elapsed_days", ~first | (stated == FIRST), _FIRST_EXPECTED)
            self._require("elapsed_days", first | (stated >= 0), _LATER_EXPECTED)
            follows = first | (stated < 0) | (stated == derived) | backwards.any()
            expected = "the days since the card's previous row"
            self._require("elapsed_days", follows, expected, "order")

    def ranges(self) -> None:
        """Check the columns whose values have bounds."""
        for name, values in self.values.items():
            column = COLUMNS[name]
            self._require(name, (values >= column.low) & (values <= column.high), column.meaning)

    def _require(
        self, name: str, good: BoolArray, expected: str, kind: str = "out_of_range"
    ) -> None:
        """Report the readable values of a column that break a rule."""
        self._report(name, ~good & self.readable[name], expected, kind)

    def _report(self, name: str, bad: BoolArray, expected: str, kind: str) -> None:
        """Add one violation that quotes the first bad rows of a column."""
        shown_name = self.column_names.get(name, name)
        self.violations += violations(
            shown_name, self.given[name], bad, expected, self.row_name, kind
        )
