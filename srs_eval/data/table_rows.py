"""From the rows of a table to a log in time order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from srs_eval.cards import FIRST, previous_review, since_previous
from srs_eval.data.by_user import UserRows
from srs_eval.data.columns import numbers, scalars, without_categories
from srs_eval.data.files import check_columns
from srs_eval.data.names import (
    EXPECTED,
    RENAME,
    identities,
    nearly_alike,
    read_names,
)
from srs_eval.data.ratings import read_ratings
from srs_eval.data.schema import Draft
from srs_eval.data.table_options import Columns, Reading
from srs_eval.data.times import day_numbers, read_times
from srs_eval.errors import ReviewLogError, Violation
from srs_eval.nouns import GROUPS, BoolArray, IntArray, Reviews, User

# Names of columns of users, but for case and what separates words.
_USERS, _SEPARATORS = ("user", "userid", "username"), re.compile(r"[\W_]+")
HINT = "Name them as data.columns.…=COLUMN."
_DUPLICATE = "card and time of an earlier row"
_ROWS_QUOTED = 3
_NOT_KNOWN = -1
_PROBABILITY = "a probability from 0 to 1, or nothing"
_PERCENT = "Divide percentages by 100."
_NOT_LATER = "no time after the answer: a prediction stored later may know it"
_ZONES = (
    "Check data.time_zone, which times without an offset refer to, and that data.columns.time is "
    "when the answer was given."
)


def columns_needed(columns: Columns) -> list[tuple[str, str]]:
    """Return the name of each column that is read from the rows, and the option that names it."""
    return [
        (name, f"data.columns.{noun.partition(' ')[0]}") for noun, name in columns.in_use().items()
    ]


def check_named_columns(
    source: str, present: Sequence[str], columns: Columns, *, has_one_user: bool = False
) -> None:
    """Check that a table has the columns that are named, and no column of users besides.

    Without such a column all rows are one user's, as in a folder with a file for each user, where
    `has_one_user` is true; elsewhere users would be merged.
    """
    wanted = columns_needed(columns)
    wanted += [(columns.user, "data.columns.user")] if columns.user else []
    check_columns(source, present, wanted, hint=HINT)
    users = [name for name in present if _SEPARATORS.sub("", name.lower()) in _USERS]
    if users and columns.user is None and not has_one_user:
        violation = (
            f"there is a column {users[0]!r}, but without its name all rows are read as one user's"
        )
        unnamed = Violation(violation, "unknown", users[0])
        raise ReviewLogError(source, [unnamed], f"Name it as data.columns.user={users[0]}.")


def read_user(user: User, logs: UserRows, columns: Columns, reading: Reading) -> Reviews:
    """Build the log of one user from rows of a table.

    Raise `ReviewLogError` with all violations at once if there is no such user, a column is
    missing, or rows cannot be read.
    """
    user = logs.known.find(user)
    rows = logs.of(user)
    source = rows.source if columns.user is None else f"{rows.source}, user {user}"
    names = columns.in_use()
    check_columns(source, list(rows.table.columns), columns_needed(columns), hint=HINT)
    part = {noun: without_categories(rows.table[name]) for noun, name in names.items()}
    log = Draft(source, part, rows.numbers, names)
    identify_cards(log)
    _rate(log, reading)
    _read_recorded(log)
    first_day = _put_in_time_order(log, reading) if "time" in part else None
    recorded = {noun: log.columns.pop(noun) for noun in [*log.columns] if _is_recorded(noun)}
    titles = {group: _number_groups(log, group) for group in GROUPS if group in log.columns}
    titles["card"] = _number(log, "card", log.columns["card"])
    _fill_first_intervals(log)
    duration = log.columns.get("duration_ms")
    if duration is not None and duration.isna().all():
        del log.columns["duration_ms"]
    log.notes += logs.known.remarks(user)
    return replace(
        log.finished(user),
        titles=titles,
        first_day=first_day,
        recorded=np.column_stack([*map(numbers, recorded.values())]) if recorded else None,
        recorded_names=tuple(names[noun] for noun in recorded),
    )


def _number_groups(log: Draft, group: str) -> Mapping[int, str]:
    """Replace the groups of a column by numbers, -1 where not known; return their names."""
    column = log.columns[group]
    read = read_names(column)
    if read.bad.any():
        is_text = np.array([isinstance(value, str) for value in scalars(column)], np.bool_)
        wrong = read.bad & column.notna().to_numpy(bool) & ~is_text
        log.refuse(group, wrong, "a number or a text, or nothing")
    return _number(log, group, read.values)


def _number(log: Draft, noun: str, names: pd.Series) -> Mapping[int, str]:
    """Replace a column by numbers; return the name of each that is not the number itself."""
    codes = log.columns[noun] = identities(names).fillna(_NOT_KNOWN)
    if names.dtype.kind in "iuf":
        return {}
    distinct = pd.DataFrame({"number": codes, "name": names}).dropna().drop_duplicates("number")
    pairs = zip(distinct["number"].tolist(), distinct["name"].tolist(), strict=True)
    return {int(number): str(name) for number, name in pairs if str(name) != str(number)}


def _rate(log: Draft, reading: Reading) -> None:
    """Read the ratings, or make them of a column that says whether a review was recalled."""
    noun = "recalled" if "recalled" in log.columns else "rating"
    column = log.columns[noun]
    ratings = read_ratings(column, reading.ratings, outcomes=noun == "recalled")
    if ratings.bad.any():
        are_numbers = np.isfinite(numbers(column[ratings.bad])).all()
        kind = "out_of_range" if are_numbers else "wrong_type"
        log.refuse(noun, ratings.bad, ratings.expected, kind)
        log.hints.append(ratings.hint)
    del log.columns[noun]
    log.columns["rating"] = ratings.values


def identify_cards(log: Draft) -> None:
    """Read the names of the cards; rows without one are refused, and not looked at further."""
    names = read_names(log.columns["card"])
    log.refuse("card", names.bad, EXPECTED)
    log.columns["card"] = names.values
    if names.bad.any():
        log.hints.append(RENAME)
        log.take(~names.bad)
    note = nearly_alike("cards", log.columns["card"])
    log.notes += [note] if note else []


def _put_in_time_order(log: Draft, reading: Reading) -> int | None:
    """Sort the rows by time, deal with duplicates, and derive days and seconds.

    Return the days from 1970 to the first of them, if it can be known.
    """
    times = read_times(log.columns["time"], unit=reading.time_unit, time_zone=reading.time_zone)
    possible = ~times.bad
    if possible.all() or (reading.invalid_times == "drop" and possible.any()):
        wrong = {what: int(rows.sum()) for rows, _, what in times.problems}
        log.left_out |= {what: count for what, count in wrong.items() if count}
    else:
        for rows, expected, _ in times.problems:
            kind = "wrong_type" if rows is times.unreadable else "out_of_range"
            log.refuse("time", rows, expected, kind)
        if possible.any():
            log.hints.append(
                "Set data.invalid_times=drop to leave out rows with impossible times and count "
                "them."
            )
        del log.columns["time"]
        # No order can be found; the other columns are checked all the same.
        log.columns["day"] = pd.Series(np.zeros(len(possible), np.int64))
        return None
    order = np.flatnonzero(possible)
    order = order[np.argsort(times.microseconds[order], kind="stable")]
    log.take(order)
    log.columns["time"] = pd.Series(times.microseconds[order])
    _settle_duplicates(log, reading)
    instants = log.columns.pop("time").to_numpy(np.int64)
    _require_recorded_before(log, instants, reading)
    days = day_numbers(instants, time_zone=reading.time_zone, day_start_hour=reading.day_start_hour)
    previous = previous_review(pd.factorize(log.columns["card"])[0].astype(np.int64))
    log.columns["day"] = pd.Series(days - days[:1])
    log.columns["elapsed_seconds"] = pd.Series(since_previous(instants // 1_000_000, previous))
    return int(days[0]) if len(days) else None


def _settle_duplicates(log: Draft, reading: Reading) -> None:
    """Drop and count, or refuse, rows with the card and time of an earlier row."""
    repeated = (
        pd.DataFrame({noun: log.columns[noun] for noun in ("card", "time")})
        .duplicated()
        .to_numpy(bool)
    )
    count = int(repeated.sum())
    if not count:
        return
    if reading.duplicates == "drop":
        _refuse_two_predictions(log)
        log.left_out[_DUPLICATE] = count
        log.take(~repeated)
        return
    places, quoted = _quoted(log, repeated)
    what = f"{quoted} {'has' if count == 1 else 'have'} the {_DUPLICATE}"
    log.violations.append(Violation(what, "duplicate", rows=places))
    log.hints.append("Set data.duplicates=drop to keep the first of them and count the others.")


def _quoted(log: Draft, rows: BoolArray) -> tuple[list[str], str]:
    """Return the places of the first of some rows, and a list of them with how many there are."""
    places = [log.place(int(row)) for row in np.flatnonzero(rows)[:_ROWS_QUOTED]]
    further = int(rows.sum()) - len(places)
    return places, ", ".join(places) + (f" and {further} further" if further else "")


def _is_recorded(noun: str) -> bool:
    """Return whether a column in use holds recorded predictions."""
    return noun.startswith("p ")


def _read_recorded(log: Draft) -> None:
    """Replace the columns of predictions by numbers, NaN where there is none."""
    for noun in filter(_is_recorded, [*log.columns]):
        given = log.columns[noun]
        p = numbers(given)
        unreadable = given.notna().to_numpy(bool) & ~np.isfinite(p)
        outside = np.isfinite(p) & ((p < 0) | (p > 1))
        log.refuse(noun, unreadable, _PROBABILITY)
        log.refuse(noun, outside, _PROBABILITY, "out_of_range")
        if outside.any() and (p[outside] > 1).all() and p[outside].max() <= 100:
            log.hints.append(_PERCENT)
        log.columns[noun] = pd.Series(np.where(unreadable | outside, np.nan, p))


def _require_recorded_before(log: Draft, answered: IntArray, reading: Reading) -> None:
    """Refuse predictions that were stored after the answer, in microseconds since 1970 [n]."""
    given = log.columns.get("recorded_at")
    if given is None:
        return
    times = read_times(given, unit=reading.time_unit, time_zone=reading.time_zone)
    has_any = np.any(
        [log.columns[noun].notna() for noun in filter(_is_recorded, log.columns)], axis=0
    )
    known = given.notna().to_numpy(bool)
    log.refuse("recorded_at", has_any & ~known, "a time wherever there is a prediction")
    log.refuse("recorded_at", known & times.unreadable, times.expected)
    late = has_any & known & ~times.unreadable & (times.late | (times.microseconds > answered))
    log.refuse("recorded_at", late, _NOT_LATER, "order")
    if late.any():
        log.hints.append(_ZONES)


def _refuse_two_predictions(log: Draft) -> None:
    """Refuse rows of one review, sorted by time, with different predictions."""
    key = [log.columns["card"], log.columns["time"]]
    for noun in filter(_is_recorded, log.columns):
        p = log.columns[noun]
        first = p.groupby(key, sort=False, dropna=False).transform("first")
        other = (p.notna() & (p != first)).to_numpy(bool)
        if other.any():
            places, quoted = _quoted(log, other)
            what = (
                f"{log.names[noun]}: {quoted}: another prediction of the review "
                "of an earlier row; expected one for each review"
            )
            log.violations.append(Violation(what, "duplicate", log.names[noun], places))


def _fill_first_intervals(log: Draft) -> None:
    """Mark an empty interval at a card's first review as a first review."""
    for noun in ("elapsed_days", "elapsed_seconds"):
        column = log.columns.get(noun)
        if column is not None and column.isna().any():
            first = previous_review(pd.factorize(log.columns["card"])[0].astype(np.int64)) == FIRST
            log.columns[noun] = column.mask(first & column.isna(), FIRST)
