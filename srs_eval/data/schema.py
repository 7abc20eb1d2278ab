"""The one place where columns become a validated `Reviews`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from srs_eval.cards import FIRST, previous_review, since_previous
from srs_eval.data.cells import numbers, violations, whole_numbers
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
    given = {name: values for name, values in columns.items() if values is not None}
    unknown = [name for name in columns if name not in COLUMNS]
    lacking = [name for name, each in COLUMNS.items() if each.is_needed and name not in given]
    if unknown or lacking:
        raise TypeError(f"a log has no columns {unknown}, and needs {lacking}")
    draft = Draft(source, given, np.arange(len(given["card"])), column_names or {})
    draft.row_name, draft.left_out = row_name or draft.row_name, dict(left_out or {})
    draft.notes = [*notes]
    return draft.finished(user)


@dataclass(slots=True)
class Draft:
    """Columns of one user on their way to a log, with all that is wrong with them."""

    source: str  # File or table, named in errors
    columns: dict[str, Any]  # [n] each, as given or as read so far
    file_row: IntArray  # [n]: Number of each row in the source, from 0
    names: Mapping[str, str] = field(default_factory=dict)  # What the source calls its columns
    row_name: Callable[[int], str] = lambda row: f"row {row + 1}"
    left_out: dict[str, int] = field(default_factory=dict)  # Rows that are not reviews, by reason
    notes: list[str] = field(default_factory=list)  # Remarks on the log
    violations: list[Violation] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)  # What to do about them

    def place(self, row: int) -> str:
        """Return the name of a row in errors."""
        return self.row_name(int(self.file_row[row]))

    def refuse(self, name: str, bad: BoolArray, expected: str, kind: str = "wrong_type") -> None:
        """Note the values of a column that break a rule."""
        shown, values = self.names.get(name, name), self.columns[name]
        self.violations += violations(shown, values, bad, expected, self.place, kind)

    def hint(self, text: str) -> None:
        """Note what to do about a violation, once."""
        self.hints += [text] if text not in self.hints else []

    def take(self, rows: IntArray | BoolArray) -> None:
        """Select rows, by number or by mask, in the given order; columns are those of pandas."""
        self.columns = {
            name: column[rows].reset_index(drop=True) for name, column in self.columns.items()
        }
        self.file_row = self.file_row[rows]

    def finished(self, user: User) -> Reviews:
        """Check all columns that are there, and return the log in their order."""
        given = {name: self.columns[name] for name in COLUMNS if name in self.columns}
        lengths = {name: len(values) for name, values in given.items()}
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{name} has {length}" for name, length in lengths.items())
            what = f"the columns differ in length: {listed} rows"
            raise ReviewLogError(self.source, [Violation(what, "length")])
        if not lengths["card"]:
            nothing = Violation("there are no reviews in it", "empty")
            raise self.error(self.violations or [nothing])
        check = _Check(self)
        for name in given:
            check.read(name)
        previous = previous_review(check.values["card"])
        derived = since_previous(check.values["day"], previous)
        check.order_and_intervals(derived, first=previous == FIRST)
        for name, column in ((name, COLUMNS[name]) for name in given):
            values = check.values[name]
            check.require(name, (values >= column.low) & (values <= column.high), column.meaning)
        if self.violations:
            raise self.error(self.violations)
        return Reviews(
            user=user,
            elapsed=np.maximum(derived, 0).astype(np.float64),
            row=np.arange(lengths["card"], dtype=np.int64),
            left_out=dict(self.left_out),
            notes=tuple(self.notes),
            **{**check.values, "elapsed_days": derived},
        )

    def error(self, wrong: Sequence[Violation]) -> ReviewLogError:
        """Return the error of a log that cannot be used."""
        return ReviewLogError(self.source, wrong, " ".join(self.hints))


@dataclass(slots=True)
class _Check:
    """The columns of a draft as numbers, and which of them could be read."""

    draft: Draft
    values: dict[str, Any] = field(default_factory=dict)
    readable: dict[str, BoolArray] = field(default_factory=dict)

    def read(self, name: str) -> None:
        """Convert one column, and note the values that are not numbers of its kind."""
        given = self.draft.columns[name]
        if COLUMNS[name].is_whole:
            self.values[name], bad = whole_numbers(given)
            self.draft.refuse(name, bad, "a whole number")
        else:
            self.values[name] = numbers(given)
            bad = ~np.isfinite(self.values[name])
            self.draft.refuse(name, bad, "a number")
        self.readable[name] = ~bad

    def order_and_intervals(self, derived: IntArray, *, first: BoolArray) -> None:
        """Check that days never decrease and that given intervals follow from them."""
        if not self.readable["card"].all():
            return
        if "elapsed_seconds" in self.values:
            seconds = self.values["elapsed_seconds"]
            self.require("elapsed_seconds", ~first | (seconds == FIRST), _FIRST_EXPECTED)
            self.require("elapsed_seconds", first | (seconds >= 0), _LATER_EXPECTED)
        if not self.readable["day"].all():
            return
        day = self.values["day"]
        plausible = (day >= -_LATEST_DAY) & (day <= _LATEST_DAY)
        plausible &= day - day[plausible].min(initial=_LATEST_DAY) <= _CENTURY_DAYS
        self.require("day", plausible, _NOT_DAYS)
        if not plausible.all():
            return
        backwards = np.r_[False, day[1:] < day[:-1]]
        in_order = "no day before that of the row above (time order)"
        self.require("day", ~backwards, in_order, "order")
        if "elapsed_days" in self.values:
            stated = self.values["elapsed_days"]
            self.require("elapsed_days", ~first | (stated == FIRST), _FIRST_EXPECTED)
            self.require("elapsed_days", first | (stated >= 0), _LATER_EXPECTED)
            follows = first | (stated < 0) | (stated == derived) | backwards.any()
            expected = "the days since the card's previous row"
            self.require("elapsed_days", follows, expected, "order")

    def require(
        self, name: str, good: BoolArray, expected: str, kind: str = "out_of_range"
    ) -> None:
        """Note the readable values of a column that break a rule."""
        self.draft.refuse(name, ~good & self.readable[name], expected, kind)
