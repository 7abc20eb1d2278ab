"""From the rows of a table to the log of one user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

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
)
from srs_eval.data.options import Columns, TableOptions
from srs_eval.data.reviews import GROUPS, IntArray, Reviews, User
from srs_eval.data.schema import Draft, Fault
from srs_eval.data.times import Times, day_numbers, read_times
from srs_eval.errors import Violation

# What a row must have to be a review
_NEEDED = ("card", "rating", "time", "day")
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
_LIST = Path("rows.csv")
_HEADER = ["user", "row", "column", "value", "problem"]


def read_log(
    user: User, source: str, rows: pd.DataFrame, columns: Columns, options: TableOptions
) -> Reviews:
    """Build the log of one user from rows of a table, whose index numbers them in the source.

    Raise `ReviewLogError` with all violations at once if they cannot be read.
    """
    log = _draft(source, rows, columns.used, options)
    p = [noun for noun in log.columns if noun.startswith("p ")]
    for noun in p:
        _read_recorded(log, noun)
    first_day = _put_in_time_order(log, options, p) if "time" in log.columns else None
    recorded = [numbers(log.columns.pop(noun)) for noun in p]
    log.columns.pop("recorded_at", None)
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
        recorded=np.column_stack(recorded) if recorded else None,
        recorded_names=tuple(columns.p or ()),
    )


@dataclass(frozen=True, slots=True)
class UserTable:
    """A table in memory with the rows of many users."""

    source: str
    rows: pd.DataFrame
    columns: Columns
    names: Sequence[User]
    user: IntArray  # [n]: Number of each row's user

    def refuse_bad_rows(self, options: TableOptions, users: Sequence[User]) -> None:
        """Raise one error if rows of several of these users cannot be read, and list the rows.

        The error of a single user says as much when that is read.
        """
        chosen = pd.Index(self.names).isin(users)
        rows = np.flatnonzero(chosen[self.user])
        nouns = {noun: name for noun, name in self.columns.used.items() if noun in _NEEDED}
        log = _draft(self.source, self.rows.iloc[rows].set_axis(rows), nouns, options)
        if "time" in nouns:
            self._check_times(log, options)
        faulty = [np.unique(self.user[fault.rows]) for fault in log.faults]
        if not faulty or len(np.unique(np.concatenate(faulty))) < 2:
            return
        log.faults = [fault._replace(violation=self._counted(fault)) for fault in log.faults]
        log.check(f"Each row: {_LIST}." if self._list(log.faults) else "")

    def _check_times(self, log: Draft, options: TableOptions) -> None:
        """Refuse impossible times and duplicates, unless they are left out when users are read."""
        times, user = _read_times(log.columns["time"], options), self.user[log.file_row]
        concerned = np.flatnonzero(np.isin(user, user[times.problem > 0]))
        for places in pd.Series(concerned).groupby(user[concerned]).indices.values():
            # What is impossible among all times may be possible in its user's log.
            own = concerned[places]
            alone = _read_times(log.columns["time"].iloc[own], options)
            times.microseconds[own], times.problem[own] = alone.microseconds, alone.problem
        if options.invalid_times == "error":
            _refuse_times(log, times, _DROP_TIMES)
        if options.duplicates == "error":
            missing = [each.rows for each in log.faults if each.violation.kind == "missing"]
            left_out = np.isin(log.file_row, np.concatenate([[], *missing]))
            possible = np.flatnonzero((times.problem == 0) & ~left_out)
            log.take(possible)
            keys = {"card": log.columns["card"], "time": times.microseconds[possible]}
            _refuse_duplicates(log, pd.DataFrame({"user": user[possible], **keys}).duplicated())

    def _counted(self, fault: Fault) -> Violation:
        """Say how many rows of how many users are concerned."""
        bad, users = len(fault.rows), len(np.unique(self.user[fault.rows]))
        of_users = f"of {users:,} of {len(self.names):,} users"
        said = f"{bad:,} of {len(self.rows):,} rows, {of_users}: {fault.violation}"
        return Violation(said, fault.violation.kind, fault.violation.column, fault.violation.rows)

    def _list(self, faults: Sequence[Fault]) -> bool:
        """Write each row into a file, and return whether that was possible."""
        parts = [
            pd.DataFrame(
                {
                    "user": [self.names[user] for user in self.user[rows]],
                    "row": rows + 1,
                    "column": violation.column,
                    "value": self.rows[violation.column].iloc[rows].to_numpy(),
                    "problem": f"{violation.kind}: {violation.partition('; ')[2]}",
                }
            )
            for violation, rows, _ in faults
        ]
        with suppress(OSError):
            if not _LIST.exists() or _LIST.read_text("utf-8").startswith(",".join(_HEADER)):
                pd.concat(parts).sort_values("row").to_csv(_LIST, columns=_HEADER, index=False)
                return True
        return False


def _draft(
    source: str, rows: pd.DataFrame, names: Mapping[str, str], options: TableOptions
) -> Draft:
    """Take columns of a table, leave out rows without a value, and read cards and ratings."""
    numbered = rows.reset_index(drop=True)
    part = {noun: column_of(numbered[name]) for noun, name in names.items()}
    remedies = dict.fromkeys(_NEEDED, _DROP_MISSING)
    log = Draft(source, part, rows.index.to_numpy(np.int64), names, remedies)
    for noun in _NEEDED if options.missing == "drop" else ():
        empty = are_missing(log.columns[noun]) if noun in log.columns else np.zeros(0, bool)
        if empty.any():
            log.left_out[f"row without a {noun}"] = int(empty.sum())
            log.take(~empty)
    identify_cards(log)
    _rate(log, options)
    return log


def identify_cards(log: Draft) -> None:
    """Read the names of the cards; rows without one are refused, and not looked at further."""
    names, bad = read_names(log.columns["card"])
    are_rounded = bad.any() and texts(log.columns["card"][bad]).map(is_rounded).any()
    log.refuse("card", bad, A_NAME, hint=_EXPORT_AGAIN if are_rounded else "")
    log.columns["card"] = names
    if bad.any():
        log.take(~bad)


def _rate(log: Draft, options: TableOptions) -> None:
    """Read the ratings."""
    column = log.columns["rating"]
    ratings, expected = read_ratings(column, options.ratings)
    bad = ~np.isin(ratings, (1, 2, 3, 4))
    if bad.any():
        are_numbers = np.isfinite(numbers(column[bad].dropna())).all()
        kind = "out_of_range" if are_numbers else "wrong_type"
        log.refuse("rating", bad, expected, kind, _MAP_RATINGS)
    log.columns["rating"] = pd.Series(np.where(bad, 1, ratings).astype(np.int64))


def _read_recorded(log: Draft, noun: str) -> None:
    """Replace a column of predictions by numbers, NaN where there is none."""
    column = log.columns[noun]
    p = numbers(column)
    outside = column.notna().to_numpy(bool) & ~((p >= 0) & (p <= 1))
    log.refuse(noun, outside, "a probability from 0 to 1, or nothing", "out_of_range")
    log.columns[noun] = pd.Series(np.where(outside, np.nan, p))


def _number(log: Draft, noun: str) -> Mapping[int, str]:
    """Replace names by numbers, -1 where not known; return those that are not the number itself."""
    names = log.columns[noun]
    if noun != "card":
        names, bad = read_names(names)
        if bad.any():
            odd = bad & ~are_missing(log.columns[noun])
            log.refuse(noun, odd, "a number or a text, or nothing")
    codes = log.columns[noun] = identities(names).fillna(-1)
    if names.dtype.kind in "iuf":
        return {}
    distinct = pd.DataFrame({"number": codes, "name": names}).dropna().drop_duplicates("number")
    pairs = zip(distinct["number"].tolist(), distinct["name"].tolist(), strict=True)
    return {int(number): str(name) for number, name in pairs if str(name) != str(number)}


def _put_in_time_order(log: Draft, options: TableOptions, recorded: list[str]) -> int | None:
    """Sort the rows by time, deal with duplicates, and derive days and seconds.

    Return the days from 1970 to the first of them, if it can be known.
    """
    times = _read_times(log.columns["time"], options)
    possible = times.problem == 0
    if not possible.all() and not (options.invalid_times == "drop" and possible.any()):
        _refuse_times(log, times, _DROP_TIMES if possible.any() else "")
        # No order can be found; the other columns are checked all the same.
        log.columns["day"] = pd.Series(np.zeros(len(possible), np.int64))
        return None
    log.left_out |= {what: int(rows.sum()) for rows, _, _, what in times.problems() if rows.any()}
    order = np.flatnonzero(possible)
    order = order[np.argsort(times.microseconds[order], kind="stable")]
    log.take(order)
    log.columns["time"] = pd.Series(times.microseconds[order])
    _settle_duplicates(log, options, recorded)
    instants = log.columns["time"].to_numpy(np.int64)
    if "recorded_at" in log.columns:
        _require_recorded_before(log, options, recorded)
    start = options.day_start_hour
    days = day_numbers(instants, time_zone=options.time_zone, day_start_hour=start)
    log.columns["day"] = pd.Series(days - days[:1])
    seconds = since_previous(instants // 1_000_000, _previous(log))
    log.columns["elapsed_seconds"] = pd.Series(seconds)
    return int(days[0]) if len(days) else None


def _previous(log: Draft) -> IntArray:
    """Row of each card's previous review."""
    return previous_review(pd.factorize(log.columns["card"])[0].astype(np.int64))


def _read_times(column: pd.Series, options: TableOptions) -> Times:
    return read_times(column, unit=options.time_unit, time_zone=options.time_zone)


def _refuse_times(log: Draft, times: Times, hint: str) -> None:
    """Refuse the rows whose times are impossible, by what is wrong with them."""
    for rows, kind, expected, _ in times.problems():
        log.refuse("time", rows, expected, kind, hint)


def _settle_duplicates(log: Draft, options: TableOptions, recorded: list[str]) -> None:
    """Leave out and count, or refuse, rows with the card and time of an earlier row."""
    if np.all(np.diff(log.columns["time"]) > 0):  # in the order of time, as rows are now
        return
    keys = pd.DataFrame({noun: log.columns[noun] for noun in ("card", "time")})
    repeated = keys.duplicated().to_numpy(bool)
    if options.duplicates == "error":
        _refuse_duplicates(log, repeated)
    elif repeated.any():
        for noun in recorded:
            p = log.columns[noun]
            first = p.groupby([keys["card"], keys["time"]], dropna=False).transform("first")
            other = (p.notna() & (p != first)).to_numpy(bool)
            log.refuse(noun, other, "the prediction of an earlier row of the review", "duplicate")
        log.left_out["card and time of an earlier row"] = int(repeated.sum())
        log.take(~repeated)


def _refuse_duplicates(log: Draft, repeated: Any) -> None:
    """Refuse rows with the card and time of an earlier row."""
    expected = "another card or time than in an earlier row"
    log.refuse("card", np.asarray(repeated), expected, "duplicate", _DROP_DUPLICATES)


def _require_recorded_before(log: Draft, options: TableOptions, recorded: list[str]) -> None:
    """Refuse predictions that were stored after the answer, or nobody says when."""
    times, answered = _read_times(log.columns["recorded_at"], options), log.columns["time"]
    has_any = np.any([log.columns[noun].notna() for noun in recorded], axis=0)
    before = (times.problem == 0) & (times.microseconds <= answered.to_numpy(np.int64))
    expected = "a time before the answer: a prediction stored later may know it"
    log.refuse("recorded_at", has_any & ~before, expected, "order", _CHECK_ZONE)
