"""The one place where columns become a validated `Reviews`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from srs_eval.data.cards import FIRST, previous_review, since_previous
from srs_eval.data.cells import are_missing, column_of, numbers, violations, whole_numbers
from srs_eval.data.reviews import COLUMNS, BoolArray, IntArray, Reviews, User
from srs_eval.errors import ReviewLogError, Violation

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

    The columns are those of `srs_eval.data.reviews.COLUMNS`; `card`, `rating` and `day` are needed.
    Elapsed days are derived from `card` and `day` if absent, and compared with them if given. Raise
    `ReviewLogError` with every kind of violation found, the first rows of each, and how many more.

    >>> log = reviews_from_columns(
    ...     user=1, source="example", card=[7, 9, 7], rating=[3, 1, 4], day=[0, 0, 5]
    ... )
    >>> log.elapsed_days.tolist()
    [-1, -1, 5]
    """
    present = {name: values for name, values in columns.items() if values is not None}
    unknown = [name for name in columns if name not in COLUMNS]
    lacking = [name for name, each in COLUMNS.items() if each.is_needed and name not in present]
    if unknown or lacking:
        raise TypeError(f"a log has no columns {unknown}, and needs {lacking}")
    cells = {name: column_of(values) for name, values in present.items()}
    draft = Draft(source, cells, np.arange(len(cells["card"])), column_names or {})
    draft.row_name, draft.left_out = row_name or draft.row_name, dict(left_out or {})
    return draft.finished(user, notes)


class Fault(NamedTuple):
    """What is wrong with a column."""

    violation: Violation
    rows: IntArray  # Numbers of all its rows in the source
    hint: str  # What to do about it


@dataclass(slots=True)
class Draft:
    """Columns of one user on their way to a log, with all that is wrong with them."""

    source: str  # File or table, named in errors
    columns: dict[str, pd.Series]  # [n] each, as read so far
    file_row: IntArray  # [n]: Number of each row in the source, from 0
    names: Mapping[str, str] = field(default_factory=dict)  # What the source calls its columns
    if_missing: Mapping[str, str] = field(default_factory=dict)  # What to do about missing values
    row_name: Callable[[int], str] = lambda row: f"row {row + 1}"
    left_out: dict[str, int] = field(default_factory=dict)  # Rows that are not reviews, by reason
    faults: list[Fault] = field(default_factory=list)

    def refuse(
        self, name: str, bad: BoolArray, expected: str, kind: str = "wrong_type", hint: str = ""
    ) -> None:
        """Note the values of a column that break a rule, those that are missing by themselves."""
        if not bad.any():
            return
        column, shown = self.columns[name], self.names.get(name, name)
        missing = are_missing(column)
        for rows, kind_of_rows, remedy in (
            (bad & missing, "missing", self.if_missing.get(name, "")),
            (bad & ~missing, kind, hint),
        ):
            wrong = violations(shown, column, rows, expected, self._place, kind_of_rows)
            self.faults += [Fault(each, self.file_row[rows], remedy) for each in wrong]

    def _place(self, row: int) -> str:
        return self.row_name(int(self.file_row[row]))

    def take(self, rows: IntArray | BoolArray) -> None:
        """Select rows, by number or by mask, in the given order; columns are those of pandas."""
        if rows.dtype != bool and np.array_equal(rows, np.arange(len(self.file_row))):
            return
        self.columns = {
            name: column[rows].reset_index(drop=True) for name, column in self.columns.items()
        }
        self.file_row = self.file_row[rows]

    def check(self, last_hint: str = "") -> None:
        """Raise `ReviewLogError` if anything was refused."""
        if self.faults:
            hints = dict.fromkeys([*(fault.hint for fault in self.faults), last_hint])
            wrong = [fault.violation for fault in self.faults]
            raise ReviewLogError(self.source, wrong, " ".join(filter(None, hints)))

    def finished(self, user: User, notes: Sequence[str] = ()) -> Reviews:
        """Check all columns that are there, and return the log in their order."""
        columns = {name: self.columns[name] for name in COLUMNS if name in self.columns}
        lengths = {name: len(values) for name, values in columns.items()}
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{name} has {length}" for name, length in lengths.items())
            what = f"the columns differ in length: {listed} rows"
            raise ReviewLogError(self.source, [Violation(what, "length")])
        if not lengths["card"]:
            self.check()
            nothing = Violation("there are no reviews in it", "empty")
            raise ReviewLogError(self.source, [nothing])
        values: dict[str, Any] = {}
        readable: dict[str, BoolArray] = {}
        for name, column in columns.items():
            if COLUMNS[name].is_whole:
                values[name], bad = whole_numbers(column)
                self.refuse(name, bad, "a whole number")
            else:
                values[name] = numbers(column)
                bad = ~np.isfinite(values[name])
                self.refuse(name, bad, "a number")
            readable[name] = ~bad
        previous = previous_review(values["card"])
        derived = since_previous(values["day"], previous)
        for name, good, expected, kind in _rules(values, readable, derived, previous == FIRST):
            self.refuse(name, ~good & readable[name], expected, kind)
        self.check()
        return Reviews(
            user=user,
            elapsed=np.maximum(derived, 0).astype(np.float64),
            row=np.arange(lengths["card"], dtype=np.int64),
            left_out=dict(self.left_out),
            notes=tuple(notes),
            **{**values, "elapsed_days": derived},
        )


def _rules(
    values: Mapping[str, Any],
    readable: Mapping[str, BoolArray],
    derived: IntArray,
    first: BoolArray,
) -> Iterator[tuple[str, BoolArray, str, str]]:
    """Return each rule: its column, where it holds [n], its words, and the kind of a violation.

    Days must be in time order, and stated intervals follow from them.
    """
    day, stated = values["day"], values.get("elapsed_days")
    is_known = readable["card"].all()
    if is_known and readable["day"].all():
        plausible = (day >= -_LATEST_DAY) & (day <= _LATEST_DAY)
        plausible &= day - day[plausible].min(initial=_LATEST_DAY) <= _CENTURY_DAYS
        yield "day", plausible, _NOT_DAYS, "out_of_range"
        if plausible.all():
            backwards = np.r_[False, day[1:] < day[:-1]]
            yield "day", ~backwards, "no day before that of the row above (time order)", "order"
            if stated is not None:
                follows = first | (stated < 0) | (stated == derived) | backwards.any()
                yield "elapsed_days", follows, "the days since the card's previous row", "order"
    for noun in ("elapsed_seconds", "elapsed_days"):
        if is_known and noun in values:
            interval = values[noun]
            at_first = ~first | (interval == FIRST)
            yield noun, at_first, "-1 at a card's first review", "out_of_range"
            later = first | (interval >= 0)
            yield noun, later, "0 or more after a card's first review", "out_of_range"
    for name, column in values.items():
        rule = COLUMNS[name]
        yield name, (column >= rule.low) & (column <= rule.high), rule.meaning, "out_of_range"
