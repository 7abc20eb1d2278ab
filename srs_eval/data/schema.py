"""The one place where columns become a validated `Reviews`: any columns, or those of a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from srs_eval.data.cards import FIRST, previous_review, since_previous
from srs_eval.data.cells import (
    A_NAME,
    are_missing,
    column_of,
    identities,
    is_rounded,
    numbers,
    read_names,
    read_ratings,
    texts,
    violations,
    whole_numbers,
)
from srs_eval.data.options import Columns, TableOptions
from srs_eval.data.reviews import COLUMNS, GROUPS, BoolArray, IntArray, Reviews, User
from srs_eval.data.times import PROBLEMS, UNREADABLE, Times, day_numbers, read_times
from srs_eval.errors import ReviewLogError, Violation

_CENTURY_DAYS = 36_525
_LATEST_DAY = 3_000_000  # Julian day numbers are below it; dates like 20240329 and seconds are not
_NOT_DAYS = (
    "day numbers (at most 3,000,000, and at most 100 years apart; give seconds, milliseconds or "
    "dates as times)"
)
# What a row must have to be a review
NEEDED = ("card", "rating", "time", "day")
_DROP_MISSING = "Set data.missing=drop to leave out rows without a value and count them."
_DROP_TIMES = "Set data.invalid_times=drop to leave out rows with impossible times and count them."
_DROP_DUPLICATES = "Set data.duplicates=drop to keep the first of them and count the others."
_MAP_RATINGS = "Say which rating each value is, such as 'data.ratings={fail: 1, pass: 3}'."
_EXPORT_AGAIN = (
    "A spreadsheet has rounded such numbers, so that several cards are one: export them as text."
)
_CHECK_ZONE = (
    "Check data.time_zone, which times without an offset refer to, and that data.columns.time is "
    "when the answer was given."
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
    """Columns of a table on their way to a log, with all that is wrong with them."""

    source: str  # File or table, named in errors
    columns: dict[str, pd.Series]  # [n] each, as read so far
    file_row: IntArray  # [n]: Number of each row in the source, from 0
    names: Mapping[str, str] = field(default_factory=dict)  # What the source calls its columns
    if_missing: Mapping[str, str] = field(default_factory=dict)  # What to do about missing values
    row_name: Callable[[int], str] = lambda row: f"row {row + 1}"
    left_out: dict[str, int] = field(default_factory=dict)  # Rows that are not reviews, by reason
    faults: list[Fault] = field(default_factory=list)

    @classmethod
    def of(cls, source: str, rows: pd.DataFrame, names: Mapping[str, str]) -> Draft:
        """Take columns of a table, whose index numbers its rows, by their names in it."""
        numbered = rows.reset_index(drop=True)
        columns = {noun: column_of(numbered[name]) for noun, name in names.items()}
        return cls(source, columns, rows.index.to_numpy(np.int64), names)

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
        """Select rows, by number or by mask, in the given order."""
        every = np.arange(len(self.file_row))
        if np.array_equal(every[rows], every):
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
            raise ReviewLogError(self.source, [Violation("there are no reviews in it", "empty")])
        values: dict[str, Any] = {}
        bad: dict[str, BoolArray] = {}
        for name, column in columns.items():
            if COLUMNS[name].is_whole:
                values[name], bad[name] = whole_numbers(column)
            else:
                values[name] = numbers(column)
                bad[name] = ~np.isfinite(values[name])
            self.refuse(name, bad[name], f"a {'whole ' * COLUMNS[name].is_whole}number")
        previous = previous_review(values["card"])
        derived = since_previous(values["day"], previous)
        if not bad["card"].any():
            if not bad["day"].any():
                stated = values.get("elapsed_days", derived)
                stated = np.where(bad.get("elapsed_days", False), derived, stated)
                self._check_days(values["day"], stated, derived)
            for noun in ("elapsed_seconds", "elapsed_days"):
                if noun in values:
                    interval, first = values[noun], previous == FIRST
                    wrong = ~bad[noun] & first & (interval != FIRST)
                    self.refuse(noun, wrong, "-1 at a card's first review", "out_of_range")
                    wrong = ~bad[noun] & ~first & ~(interval >= 0)
                    expected = "0 or more after a card's first review"
                    self.refuse(noun, wrong, expected, "out_of_range")
        for name, column in values.items():
            rule = COLUMNS[name]
            wrong = ~bad[name] & ~((column >= rule.low) & (column <= rule.high))
            self.refuse(name, wrong, rule.meaning, "out_of_range")
        self.check()
        return Reviews(
            user=user,
            elapsed=np.maximum(derived, 0).astype(np.float64),
            row=np.arange(lengths["card"], dtype=np.int64),
            left_out=dict(self.left_out),
            notes=tuple(notes),
            **{**values, "elapsed_days": derived},
        )

    def _check_days(self, day: IntArray, stated: IntArray, derived: IntArray) -> None:
        """Refuse days that are none or not in order, and intervals that do not follow from them."""
        plausible = (day >= -_LATEST_DAY) & (day <= _LATEST_DAY)
        plausible &= day - day[plausible].min(initial=_LATEST_DAY) <= _CENTURY_DAYS
        self.refuse("day", ~plausible, _NOT_DAYS, "out_of_range")
        if not plausible.all():
            return
        backwards = np.r_[False, day[1:] < day[:-1]]
        self.refuse("day", backwards, "no day before that of the row above (time order)", "order")
        if not backwards.any():
            other = (derived != FIRST) & (stated >= 0) & (stated != derived)
            self.refuse("elapsed_days", other, "the days since the card's previous row", "order")


def read_log(
    user: User, source: str, rows: pd.DataFrame, columns: Columns, options: TableOptions
) -> Reviews:
    """Build the log of one user from rows of a table, whose index numbers them in the source."""
    log = draft_of(source, rows, columns.used, options)
    p = [numbers(log.columns[noun]) for noun in _recorded(log)]
    first_day = None
    if "time" in log.columns:
        microseconds = log.columns["time"].to_numpy(np.int64)
        if "recorded_at" in log.columns:
            stored, problem, _ = _times_of(log.columns["recorded_at"], options)
            later = (problem > 0) | (stored > microseconds)
            later &= np.isfinite(p).any(axis=0)
            expected = "a time before the answer: a prediction stored later may know it"
            log.refuse("recorded_at", later, expected, "order", _CHECK_ZONE)
        zone, start = options.time_zone, options.day_start_hour
        days = day_numbers(microseconds, time_zone=zone, day_start_hour=start)
        log.columns["day"] = pd.Series(days - days[:1])
        seconds = since_previous(microseconds // 1_000_000, _previous(log))
        log.columns["elapsed_seconds"] = pd.Series(seconds)
        first_day = int(days[0]) if len(days) else None
    titles = {noun: _number(log, noun) for noun in ("card", *GROUPS) if noun in log.columns}
    for noun in ("elapsed_days", "elapsed_seconds"):  # which may be empty at a card's first review
        column = log.columns.get(noun)
        if column is not None and column.isna().any():
            log.columns[noun] = column.mask((_previous(log) == FIRST) & column.isna(), FIRST)
    if "duration_ms" in log.columns and log.columns["duration_ms"].isna().all():
        del log.columns["duration_ms"]
    return replace(
        log.finished(user),
        titles=titles,
        first_day=first_day,
        recorded=np.column_stack(p) if p else None,
        recorded_names=tuple(columns.p or ()),
    )


def draft_of(
    source: str,
    rows: pd.DataFrame,
    names: Mapping[str, str],
    options: TableOptions,
    user: IntArray | None = None,
) -> Draft:
    """Read cards, ratings and times of rows of one user or several, in the order of time.

    Rows without a card or a time are left out or refused, and not looked at further.
    """
    log = Draft.of(source, rows, names)
    log.if_missing = dict.fromkeys(NEEDED, _DROP_MISSING)
    log.columns |= {} if user is None else {"user": pd.Series(user)}
    for noun in NEEDED if options.missing == "drop" else ():
        if noun in log.columns and (empty := are_missing(log.columns[noun])).any():
            log.left_out[f"row without a {noun}"] = int(empty.sum())
            log.take(~empty)
    identify_cards(log)
    _rate(log, options)
    for noun in _recorded(log):
        column, p = log.columns[noun], numbers(log.columns[noun])
        outside = column.notna().to_numpy(bool) & ~((p >= 0) & (p <= 1))
        log.refuse(noun, outside, "a probability from 0 to 1, or nothing", "out_of_range")
        log.columns[noun] = pd.Series(np.where(outside, np.nan, p))
    if "time" in names:
        _put_in_time_order(log, options)
        _settle_duplicates(log, options)
    return log


def identify_cards(log: Draft) -> None:
    """Read the names of the cards; refuse rows without one."""
    names, bad = read_names(log.columns["card"])
    are_rounded = bad.any() and texts(log.columns["card"][bad]).map(is_rounded).any()
    log.refuse("card", bad, A_NAME, hint=_EXPORT_AGAIN if are_rounded else "")
    log.columns["card"] = names
    log.take(~bad)


def _rate(log: Draft, options: TableOptions) -> None:
    """Read the ratings."""
    column = log.columns["rating"]
    ratings, expected = read_ratings(column, options.ratings)
    bad = ~np.isin(ratings, (1, 2, 3, 4))
    are_numbers = bad.any() and np.isfinite(numbers(column[bad].dropna())).all()
    kind = "out_of_range" if are_numbers else "wrong_type"
    log.refuse("rating", bad, expected, kind, _MAP_RATINGS)
    log.columns["rating"] = pd.Series(np.where(bad, 1, ratings).astype(np.int64))


def _put_in_time_order(log: Draft, options: TableOptions) -> None:
    """Read the times, leave out and count or refuse impossible ones, and sort the rows."""
    column, user = log.columns["time"], log.columns.get("user")
    microseconds, problem, expected = _times_of(column, options)
    if user is not None and problem.any():
        # What is impossible among all times may be possible in its user's log.
        concerned = user[user.isin(user[problem > 0])]
        for rows in concerned.groupby(concerned).groups.values():
            microseconds[rows], problem[rows], _ = _times_of(column[rows], options)
    possible = np.flatnonzero(problem == 0)
    for number, what in PROBLEMS.items():
        bad = problem == number
        if bad.any() and len(possible) and options.invalid_times == "drop":
            log.left_out[what] = int(bad.sum())
        else:
            kind = "wrong_type" if number == UNREADABLE else "out_of_range"
            log.refuse("time", bad, expected, kind, _DROP_TIMES * (len(possible) > 0))
    log.columns["time"] = pd.Series(microseconds)
    log.take(possible[np.argsort(microseconds[possible], kind="stable")])


def _settle_duplicates(log: Draft, options: TableOptions) -> None:
    """Leave out and count, or refuse, rows with the card and time of an earlier row."""
    if np.all(np.diff(log.columns["time"]) > 0):
        return
    keys = [log.columns[noun] for noun in ("user", "card", "time") if noun in log.columns]
    repeated = pd.concat(keys, axis=1, ignore_index=True).duplicated().to_numpy(bool)
    if options.duplicates == "error":
        expected = "another card or time than in an earlier row"
        log.refuse("card", repeated, expected, "duplicate", _DROP_DUPLICATES)
    elif repeated.any():
        for noun in _recorded(log):
            p = log.columns[noun]
            first = p.groupby(keys, dropna=False).transform("first")
            other = (p.notna() & (p != first)).to_numpy(bool)
            log.refuse(noun, other, "the prediction of an earlier row of the review", "duplicate")
        log.left_out["card and time of an earlier row"] = int(repeated.sum())
        log.take(~repeated)


def _number(log: Draft, noun: str) -> Mapping[int, str]:
    """Replace names by numbers, -1 where not known; return those that are not the number itself."""
    names = log.columns[noun]
    if noun != "card":
        names, bad = read_names(names)
        odd = bad & ~are_missing(log.columns[noun])
        log.refuse(noun, odd, "a number or a text, or nothing")
    codes = log.columns[noun] = identities(names).fillna(-1)
    if names.dtype.kind in "iuf":
        return {}
    distinct = pd.DataFrame({"number": codes, "name": names}).dropna().drop_duplicates("number")
    pairs = zip(distinct["number"].tolist(), distinct["name"].tolist(), strict=True)
    return {int(number): str(name) for number, name in pairs if str(name) != str(number)}


def _recorded(log: Draft) -> list[str]:
    """Columns of predictions."""
    return [noun for noun in log.columns if noun.startswith("p ")]


def _times_of(column: pd.Series, options: TableOptions) -> Times:
    return read_times(column, unit=options.time_unit, time_zone=options.time_zone)


def _previous(log: Draft) -> IntArray:
    """Row of each card's previous review."""
    return previous_review(pd.factorize(log.columns["card"])[0].astype(np.int64))
