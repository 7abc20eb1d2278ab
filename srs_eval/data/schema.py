"""The one place where columns become a validated `Reviews`: any columns, or those of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from srs_eval.data.cards import FIRST, rows_by_card, since_previous
from srs_eval.data.cells import (
    as_whole,
    column_of,
    identities,
    numbers,
    quoted,
    read_names,
    read_ratings,
    whole_numbers,
)
from srs_eval.data.options import Columns, TableOptions
from srs_eval.data.reviews import COLUMNS, GROUPS, BoolArray, IntArray, Reviews, User
from srs_eval.data.times import PROBLEMS, UNREADABLE, day_numbers, read_times
from srs_eval.errors import ReviewLogError, Violation

_CENTURY_DAYS, _LONGEST_NAME, _ROWS_QUOTED = 36_525, 200, 3
_A_NAME = "a number or a text that does not stand for a missing value"
_LATEST_DAY = 3_000_000  # Julian day numbers are below it; dates like 20240329 and seconds are not
_NOT_DAYS = "day numbers, up to 3,000,000 and 100 years apart (seconds and dates are times)"
# What a row must have to be a review
_NEEDED = ("card", "rating", "time", "day")
_DROP_MISSING = "Set data.missing=drop to leave out rows without a value and count them."
_DROP_TIMES = "Set data.invalid_times=drop to leave out rows with impossible times and count them."
_DROP_DUPLICATES = "Set data.duplicates=drop to keep the first of them and count the others."
_MAP_RATINGS = "Say which rating each value is, such as 'data.ratings={fail: 1, pass: 3}'."
_EXPORT_AGAIN = "Export card numbers as text: spreadsheets round them, and several become one."
_CHECK_ZONE = "Check data.time_zone, and that data.columns.time is when the answer was given."


def reviews_from_columns(
    *,
    user: User,
    source: str,  # file or table the columns come from, named in errors
    left_out: Mapping[str, int] | None = None,  # rows that are not reviews, counted by reason
    notes: Sequence[str] = (),  # remarks on the log for the person
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
    if unknown := columns.keys() - COLUMNS.keys():
        raise TypeError(f"a log has no columns {unknown}")
    present = {name: column_of(values) for name, values in columns.items() if values is not None}
    cells = {name: as_whole(column).array for name, column in present.items()}
    return Draft(source, pd.DataFrame(cells), left_out=dict(left_out or {})).finished(user, notes)


@dataclass(slots=True)
class Draft:
    """Rows of a table on their way to a log, with all that is wrong with them."""

    source: str  # File or table, named in errors
    rows: pd.DataFrame  # Columns by nouns, as read so far; the index numbers the source's rows
    names: Mapping[str, str] = field(default_factory=dict)  # What the source calls its columns
    left_out: dict[str, int] = field(default_factory=dict)  # Rows that are not reviews, by reason
    # What is wrong: noun, violation, numbers of all its rows in the source, and what to do about it
    faults: list[tuple[str, Violation, IntArray, str]] = field(default_factory=list)

    def refuse(
        self, noun: str, bad: BoolArray, expected: str, kind: str = "wrong_type", hint: str = ""
    ) -> None:
        """Note the values of a column that break a rule: the first of them, and how many."""
        if not bad.any():
            return
        column, name = self.rows[noun][bad], self.names.get(noun, noun)
        cells, missing = column[:_ROWS_QUOTED], column.isna()
        if cells.dtype.kind == "M":  # not as Timestamp: those of far years cannot be written
            naive = cells if cells.dt.tz is None else cells.dt.tz_convert(None)
            cells = pd.Series(naive.to_numpy().astype(str), cells.index)
        places = [f"row {row + 1}" for row in cells.index]
        pairs = zip(cells.tolist(), missing.tolist(), strict=False)
        said = ["nothing" if is_missing else quoted(cell) for cell, is_missing in pairs]
        each = ", ".join(f"{place} has {cell}" for place, cell in zip(places, said, strict=True))
        further = f" and {len(column) - len(cells):,} further rows" * (len(column) > len(cells))
        kind = "missing" if missing.all() else kind
        violation = Violation(f"{name}: {each}{further}; expected {expected}", kind, name, places)
        self.faults.append((noun, violation, column.index.to_numpy(), hint))

    def leave_out(self, reason: str, rows: BoolArray) -> None:
        """Count rows that are not reviews, and select the others."""
        if rows.any():
            self.left_out[reason] = int(rows.sum())
            self.rows = self.rows[~rows]

    def check(self) -> None:
        """Raise `ReviewLogError` if anything was refused."""
        if self.faults:
            _, wrong, _, hints = zip(*self.faults, strict=True)
            raise ReviewLogError(self.source, wrong, " ".join(filter(None, dict.fromkeys(hints))))

    def finished(self, user: User, notes: Sequence[str] = ()) -> Reviews:
        """Check all columns that are there, and return the log in their order."""
        if not len(self.rows):
            self.check()
            raise ReviewLogError(self.source, [Violation("there are no reviews in it", "empty")])
        values: dict[str, Any] = {}
        for noun, rule in COLUMNS.items():
            if noun not in self.rows:
                continue
            if rule.is_whole:
                values[noun], bad = whole_numbers(self.rows[noun])
            else:
                values[noun] = numbers(self.rows[noun])
                bad = ~np.isfinite(values[noun])
            self.refuse(noun, bad, f"a {'whole ' * rule.is_whole}number")
            outside = ~bad & ~((values[noun] >= rule.low) & (values[noun] <= rule.high))
            self.refuse(noun, outside, rule.meaning, "out_of_range")
        self.check()
        derived = since_previous(values["day"], values["card"])
        self._check_intervals(values, rows_by_card(values["card"]).nth == 0, derived)
        self.check()
        return Reviews(
            user=user,
            elapsed=np.maximum(derived, 0).astype(np.float64),
            row=np.arange(len(self.rows), dtype=np.int64),
            left_out=dict(self.left_out),
            notes=tuple(notes),
            **{**values, "elapsed_days": derived},
        )

    def _check_intervals(
        self, values: Mapping[str, Any], is_first: BoolArray, derived: IntArray
    ) -> None:
        """Refuse days that are none or not in order, and intervals that do not follow from them."""
        day = values["day"]
        plausible = (day >= -_LATEST_DAY) & (day <= _LATEST_DAY)
        plausible &= day - day[plausible].min(initial=_LATEST_DAY) <= _CENTURY_DAYS
        self.refuse("day", ~plausible, _NOT_DAYS, "out_of_range")
        backwards = np.r_[False, day[1:] < day[:-1]] & plausible.all()
        self.refuse("day", backwards, "no day before that of the row above (time order)", "order")
        are_days = not self.faults
        for noun in ("elapsed_seconds", "elapsed_days"):
            if noun in values:
                wrong = np.where(is_first, values[noun] != FIRST, values[noun] < 0)
                expected = "-1 at a card's first review, 0 or more at others"
                self.refuse(noun, wrong, expected, "out_of_range")
                if are_days and noun == "elapsed_days":
                    other = ~wrong & (values[noun] != derived)
                    self.refuse(noun, other, "the days since the card's previous row", "order")


def read_log(
    user: User, source: str, rows: pd.DataFrame, columns: Columns, options: TableOptions
) -> Reviews:
    """Build the log of one user from rows of a table, its columns called by their nouns."""
    log = draft_of(source, rows, columns, options)
    card = pd.factorize(log.rows["card"])[0].astype(np.int64)
    p = [numbers(log.rows[noun]) for noun in _recorded(log)]
    first_day = None
    if "time" in log.rows:
        microseconds = log.rows["time"].to_numpy(np.int64)
        if "recorded_at" in log.rows:
            stored, problem, _ = read_times(log.rows["recorded_at"], options)
            later = (problem > 0) | (stored > microseconds)
            later &= np.isfinite(p).any(axis=0)
            expected = "a time before the answer: a prediction stored later may know it"
            log.refuse("recorded_at", later, expected, "order", _CHECK_ZONE)
        days = day_numbers(microseconds, options)
        log.rows["day"] = days - days[:1]
        log.rows["elapsed_seconds"] = since_previous(microseconds // 1_000_000, card)
        first_day = int(days[0]) if len(days) else None
    titles = {noun: _number(log, noun) for noun in ("card", *GROUPS) if noun in log.rows}
    for noun in ("elapsed_days", "elapsed_seconds"):  # which may be empty at a card's first review
        if noun in log.rows:
            column = log.rows[noun]
            first = str(FIRST) if isinstance(column.dtype, pd.StringDtype) else FIRST
            log.rows[noun] = column.mask((rows_by_card(card).nth == 0) & column.isna(), first)
    if "duration_ms" in log.rows and log.rows["duration_ms"].isna().all():
        del log.rows["duration_ms"]
    return replace(
        log.finished(user),
        titles=titles,
        first_day=first_day,
        recorded=np.column_stack(p) if p else None,
        recorded_names=tuple(columns.p or ()),
    )


def draft_of(source: str, rows: pd.DataFrame, columns: Columns, options: TableOptions) -> Draft:
    """Read cards, ratings and times of rows of one user, or of several, in the order of time.

    The index numbers the rows in the source; a column ``user`` tells several users apart. Rows
    without a card, rating or time are left out or refused, and not looked at further.
    """
    log = Draft(source, rows.copy(deep=False), columns.used)
    for noun in [noun for noun in _NEEDED if noun in log.rows]:
        empty = log.rows[noun].isna().to_numpy(bool)
        if options.missing == "drop":
            log.leave_out(f"row without a {noun}", empty)
        elif noun != "time" or options.invalid_times == "error":
            log.refuse(noun, empty, "a value", hint=_DROP_MISSING)
            log.rows = log.rows[~empty]
    identify_cards(log)
    _rate(log, options)
    for noun in _recorded(log):
        column, p = log.rows[noun], numbers(log.rows[noun])
        outside = column.notna().to_numpy(bool) & ~((p >= 0) & (p <= 1))
        log.refuse(noun, outside, "a probability from 0 to 1, or nothing", "out_of_range")
        log.rows[noun] = np.where(outside, np.nan, p)
    if "time" in log.rows:
        _put_in_time_order(log, options)
        _settle_duplicates(log, options)
    return log


def users_of(column: pd.Series, source: str, name: str) -> tuple[IntArray, list[User]]:
    """Return the number of each row's user, and the users, as numbers where they are some.

    The index of the column numbers its rows in the source; `name` is what that calls it.
    """
    names, bad = read_names(column)
    codes, distinct = pd.factorize(names)
    users = [*map(str, distinct)]
    is_odd = [len(user) > _LONGEST_NAME or not user.isprintable() for user in users]
    draft = Draft(source, column.to_frame("user"), {"user": name})
    expected = f"a user: {_A_NAME}, at most {_LONGEST_NAME} printable characters"
    draft.refuse("user", bad | np.array([*is_odd, False], bool)[codes], expected)
    draft.check()
    return codes, [
        int(user) if user.isdecimal() and str(int(user)) == user else user for user in users
    ]


def identify_cards(log: Draft) -> None:
    """Read the names of the cards; refuse rows without one."""
    names, bad = read_names(log.rows["card"])
    log.refuse("card", bad, _A_NAME, hint=_EXPORT_AGAIN)
    log.rows["card"] = names
    log.rows = log.rows[~bad]


def _rate(log: Draft, options: TableOptions) -> None:
    """Read the ratings."""
    column, words = log.rows["rating"], options.ratings
    ratings = read_ratings(column, words)
    bad = np.isnan(ratings)
    expected = "1 (Again) to 4 (Easy), or again, hard, good, easy, pass, fail, true or false"
    expected = f"a value that data.ratings has: {', '.join(words)}" if words else expected
    are_numbers = bad.any() and np.isfinite(numbers(column[bad])).all()
    kind = "out_of_range" if are_numbers else "wrong_type"
    log.refuse("rating", bad, expected, kind, _MAP_RATINGS)
    log.rows["rating"] = np.where(bad, 1, ratings).astype(np.int64)


def _put_in_time_order(log: Draft, options: TableOptions) -> None:
    """Read the times, leave out and count or refuse impossible ones, and sort the rows."""
    column = log.rows["time"]
    microseconds, problem, expected = read_times(column, options)
    if "user" in log.rows and problem.any():
        # What is impossible among all times may be possible in its user's log.
        for own in log.rows.reset_index(drop=True).groupby("user").indices.values():
            if problem[own].any():
                microseconds[own], problem[own], _ = read_times(column.iloc[own], options)
    possible = np.flatnonzero(problem == 0)
    for number, what in enumerate(PROBLEMS, 1):
        bad = problem == number
        if bad.any() and len(possible) and options.invalid_times == "drop":
            log.left_out[what] = int(bad.sum())
        else:
            kind = "wrong_type" if number == UNREADABLE else "out_of_range"
            log.refuse("time", bad, expected, kind, _DROP_TIMES * (len(possible) > 0))
    log.rows["time"] = microseconds
    in_order = np.argsort(microseconds[possible], kind="stable")
    log.rows = log.rows.iloc[possible[in_order]]


def _settle_duplicates(log: Draft, options: TableOptions) -> None:
    """Leave out and count, or refuse, rows with the card and time of an earlier row."""
    if np.all(np.diff(log.rows["time"]) > 0):
        return
    keys = [noun for noun in ("user", "card", "time") if noun in log.rows]
    repeated = log.rows.duplicated(keys).to_numpy(bool)
    if options.duplicates == "drop":
        for noun in _recorded(log):
            p, first = log.rows[noun], log.rows.groupby(keys)[noun].transform("first")
            other, expected = p.notna() & (p != first), "the prediction of its earlier row"
            log.refuse(noun, other.to_numpy(bool), expected, "duplicate")
        log.leave_out("card and time of an earlier row", repeated)
    else:
        expected = "another card or time than in an earlier row"
        log.refuse("card", repeated, expected, "duplicate", _DROP_DUPLICATES)


def _number(log: Draft, noun: str) -> Mapping[int, str]:
    """Replace names by numbers, -1 where not known; return those that are not the number itself."""
    names = log.rows[noun]
    if noun != "card":
        names, bad = read_names(names)
        log.refuse(noun, bad & log.rows[noun].notna(), "a number or a text, or nothing")
    codes = log.rows[noun] = identities(names).fillna(-1)
    if names.dtype.kind in "iu":
        return {}
    named = pd.Series(names.to_numpy(), codes).dropna()
    named = named[~named.index.duplicated()]
    pairs = zip(named.index.tolist(), named.tolist(), strict=True)
    return {int(number): str(name) for number, name in pairs if str(name) != str(number)}


def _recorded(log: Draft) -> list[str]:
    """Columns of predictions."""
    return [noun for noun in map(str, log.rows) if noun.startswith("p ")]
