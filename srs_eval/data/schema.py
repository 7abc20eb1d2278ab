"""The one place where columns become a validated `Reviews`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from srs_eval.cards import FIRST, previous_review, since_previous
from srs_eval.data.cells import finite_numbers, violations, whole_numbers
from srs_eval.errors import ReviewLogError, Violation
from srs_eval.nouns import COLUMNS, BoolArray, IntArray, Reviews, User

_CENTURY_DAYS = 36_525
_LATEST_DAY = 3_000_000  # Julian day numbers are below it; dates like 20240329 and seconds are not
_NOT_DAYS = (
    "day numbers (at most 3,000,000, and at most 100 years apart; give seconds, milliseconds or "
    "dates as times)"
)


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
        if rows.dtype != bool and np.array_equal(rows, np.arange(len(self.file_row))):
            return
        self.columns = {
            name: column[rows].reset_index(drop=True) for name, column in self.columns.items()
        }
        self.file_row = self.file_row[rows]

    def finished(self, user: User) -> Reviews:
        """Check all columns that are there, and return the log in their order."""
        columns = {name: self.columns[name] for name in COLUMNS if name in self.columns}
        lengths = {name: len(values) for name, values in columns.items()}
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{name} has {length}" for name, length in lengths.items())
            what = f"the columns differ in length: {listed} rows"
            raise ReviewLogError(self.source, [Violation(what, "length")])
        if not lengths["card"]:
            raise self.error(self.violations or [Violation("there are no reviews in it", "empty")])
        values: dict[str, Any] = {}
        readable: dict[str, BoolArray] = {}
        for name, column in columns.items():
            is_whole = COLUMNS[name].is_whole
            values[name], bad = whole_numbers(column) if is_whole else finite_numbers(column)
            self.refuse(name, bad, "a whole number" if is_whole else "a number")
            readable[name] = ~bad
        previous = previous_review(values["card"])
        derived = since_previous(values["day"], previous)

        def require(name: str, good: BoolArray, expected: str, kind: str = "out_of_range") -> None:
            self.refuse(name, ~good & readable[name], expected, kind)

        if readable["card"].all():
            days = values["day"] if readable["day"].all() else None
            _check_intervals(values, days, derived, previous == FIRST, require)
        for name in columns:
            rule = COLUMNS[name]
            inside = (values[name] >= rule.low) & (values[name] <= rule.high)
            require(name, inside, rule.meaning)
        if self.violations:
            raise self.error(self.violations)
        return Reviews(
            user=user,
            elapsed=np.maximum(derived, 0).astype(np.float64),
            row=np.arange(lengths["card"], dtype=np.int64),
            left_out=dict(self.left_out),
            notes=tuple(self.notes),
            **{**values, "elapsed_days": derived},
        )

    def error(self, wrong: Sequence[Violation]) -> ReviewLogError:
        """Return the error of a log that cannot be used."""
        return ReviewLogError(self.source, wrong, " ".join(self.hints))


def _check_intervals(
    values: Mapping[str, Any],
    day: IntArray | None,
    derived: IntArray,
    first: BoolArray,
    require: Callable[..., None],
) -> None:
    """Check that days never decrease and that stated intervals follow from them."""

    def require_sign(noun: str) -> None:
        if noun in values:
            require(noun, ~first | (values[noun] == FIRST), "-1 at a card's first review")
            require(noun, first | (values[noun] >= 0), "0 or more after a card's first review")

    require_sign("elapsed_seconds")
    if day is None:
        return
    plausible = (day >= -_LATEST_DAY) & (day <= _LATEST_DAY)
    plausible &= day - day[plausible].min(initial=_LATEST_DAY) <= _CENTURY_DAYS
    require("day", plausible, _NOT_DAYS)
    if not plausible.all():
        return
    backwards = np.r_[False, day[1:] < day[:-1]]
    require("day", ~backwards, "no day before that of the row above (time order)", "order")
    require_sign("elapsed_days")
    if "elapsed_days" in values:
        stated = values["elapsed_days"]
        follows = first | (stated < 0) | (stated == derived) | backwards.any()
        require("elapsed_days", follows, "the days since the card's previous row", "order")
