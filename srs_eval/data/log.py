"""From the rows of a table to the log of one user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from srs_eval.cards import FIRST, previous_review, since_previous
from srs_eval.data.cells import (
    A_NAME,
    MAP_RATINGS,
    are_missing,
    identities,
    is_rounded,
    numbers,
    plain,
    read_names,
    read_ratings,
    without_categories,
)
from srs_eval.data.options import Columns, TableOptions
from srs_eval.data.schema import Draft
from srs_eval.data.times import day_numbers, read_times
from srs_eval.errors import Violation
from srs_eval.nouns import GROUPS, BoolArray, IntArray, Reviews, User

# What a row must have to be a review
NEEDED = ("card", "rating", "recalled", "time", "day")
DROP_MISSING = "Set data.missing=drop to leave out rows without a value and count them."
DROP_TIMES = "Set data.invalid_times=drop to leave out rows with impossible times and count them."
DROP_DUPLICATES = "Set data.duplicates=drop to keep the first of them and count the others."
_RENAME = "Give what is really called so another name."
_EXPORT_AGAIN = (
    "A spreadsheet has rounded such numbers, so that several cards are one: export them as text."
)
_CHECK_ZONE = (
    "Check data.time_zone, which times without an offset refer to, and that data.columns.time is "
    "when the answer was given."
)
_PROBABILITY = "a probability from 0 to 1, or nothing"
_ROWS_QUOTED = 3


def read_log(
    user: User, source: str, rows: pd.DataFrame, columns: Columns, options: TableOptions
) -> Reviews:
    """Build the log of one user from rows of a table, whose index numbers them in the source.

    Raise `ReviewLogError` with all violations at once if they cannot be read.
    """
    p = {f"p {name}": name for name in columns.p or ()}
    names, file_rows = columns.used | p, rows.index.to_numpy(np.int64)
    rows = rows.reset_index(drop=True)
    part = {noun: without_categories(rows[name]) for noun, name in names.items()}
    log = Draft(source, part, file_rows, names)
    _leave_out_missing(log, options)
    identify_cards(log)
    _rate(log, options)
    for noun in p:
        _read_recorded(log, noun)
    first_day = _put_in_time_order(log, options, [*p]) if "time" in part else None
    recorded = [numbers(log.columns.pop(noun)) for noun in p]
    log.columns.pop("recorded_at", None)
    titles = {group: _number_groups(log, group) for group in GROUPS if group in part}
    titles["card"] = _number(log, "card", log.columns["card"])
    _fill_first_intervals(log)
    if "duration_ms" in part and log.columns["duration_ms"].isna().all():
        del log.columns["duration_ms"]
    return replace(
        log.finished(user),
        titles=titles,
        first_day=first_day,
        recorded=np.column_stack(recorded) if recorded else None,
        recorded_names=tuple(p.values()),
    )


def _leave_out_missing(log: Draft, options: TableOptions) -> None:
    """Leave out and count rows without a card, a rating or a time, or note what to do."""
    for noun in NEEDED:
        empty = are_missing(log.columns[noun]) if noun in log.columns else np.zeros(0, bool)
        if empty.any() and options.missing == "drop":
            log.left_out[f"row without a {noun}"] = int(empty.sum())
            log.take(~empty)
        elif empty.any():
            log.hint(DROP_MISSING)


def identify_cards(log: Draft) -> None:
    """Read the names of the cards; rows without one are refused, and not looked at further."""
    names, bad = read_names(log.columns["card"])
    if bad.any():
        cells = plain(log.columns["card"])[bad]
        log.refuse("card", bad, A_NAME)
        if cells.map(is_rounded).any():
            log.hint(_EXPORT_AGAIN)
        elif cells.notna().any():
            log.hint(_RENAME)
    log.columns["card"] = names
    if bad.any():
        log.take(~bad)


def _number_groups(log: Draft, group: str) -> Mapping[int, str]:
    """Replace the groups of a column by numbers, -1 where not known; return their names."""
    column = log.columns[group]
    names, bad = read_names(column)
    if bad.any():
        are_words = [isinstance(cell, str) and not is_rounded(cell) for cell in plain(column)]
        odd = bad & column.notna().to_numpy(bool) & ~np.array(are_words, bool)
        log.refuse(group, odd, "a number or a text, or nothing")
    return _number(log, group, names)


def _number(log: Draft, noun: str, names: pd.Series) -> Mapping[int, str]:
    """Replace a column by numbers; return the name of each that is not the number itself."""
    codes = log.columns[noun] = identities(names).fillna(-1)
    if names.dtype.kind in "iuf":
        return {}
    distinct = pd.DataFrame({"number": codes, "name": names}).dropna().drop_duplicates("number")
    pairs = zip(distinct["number"].tolist(), distinct["name"].tolist(), strict=True)
    return {int(number): str(name) for number, name in pairs if str(name) != str(number)}


def _rate(log: Draft, options: TableOptions) -> None:
    """Read the ratings, or make them of a column that says whether a review was recalled."""
    noun = "recalled" if "recalled" in log.columns else "rating"
    column = log.columns[noun]
    ratings, expected = read_ratings(column, options.ratings, outcomes=noun == "recalled")
    bad = ~np.isin(ratings, (1, 2, 3, 4))
    if bad.any():
        are_numbers = np.isfinite(numbers(column[bad])).all()
        log.refuse(noun, bad, expected, "out_of_range" if are_numbers else "wrong_type")
        if not are_missing(column[bad]).all():
            log.hint(MAP_RATINGS)
    del log.columns[noun]
    log.columns["rating"] = pd.Series(np.where(bad, 1, ratings).astype(np.int64))


def _put_in_time_order(log: Draft, options: TableOptions, recorded: list[str]) -> int | None:
    """Sort the rows by time, deal with duplicates, and derive days and seconds.

    Return the days from 1970 to the first of them, if it can be known.
    """
    zone = options.time_zone
    times = read_times(log.columns["time"], unit=options.time_unit, time_zone=zone)
    possible = ~times.bad
    if not possible.all() and not (options.invalid_times == "drop" and possible.any()):
        for rows, kind, expected, _ in times.problems:
            log.refuse("time", rows, expected, kind)
        if possible.any() and not are_missing(log.columns["time"][~possible]).all():
            log.hint(DROP_TIMES)
        # No order can be found; the other columns are checked all the same.
        log.columns["day"] = pd.Series(np.zeros(len(possible), np.int64))
        return None
    wrong = {what: int(rows.sum()) for rows, _, _, what in times.problems}
    log.left_out |= {what: count for what, count in wrong.items() if count}
    order = np.flatnonzero(possible)
    order = order[np.argsort(times.microseconds[order], kind="stable")]
    log.take(order)
    log.columns["time"] = pd.Series(times.microseconds[order])
    _settle_duplicates(log, options, recorded)
    instants = log.columns["time"].to_numpy(np.int64)
    if "recorded_at" in log.columns:
        _require_recorded_before(log, instants, options, recorded)
    days = day_numbers(instants, time_zone=zone, day_start_hour=options.day_start_hour)
    previous = previous_review(pd.factorize(log.columns["card"])[0].astype(np.int64))
    log.columns["day"] = pd.Series(days - days[:1])
    log.columns["elapsed_seconds"] = pd.Series(since_previous(instants // 1_000_000, previous))
    return int(days[0]) if len(days) else None


def _settle_duplicates(log: Draft, options: TableOptions, recorded: list[str]) -> None:
    """Leave out and count, or refuse, rows with the card and time of an earlier row."""
    if np.all(np.diff(log.columns["time"]) > 0):  # in the order of time, as rows are now
        return
    keys = pd.DataFrame({noun: log.columns[noun] for noun in ("card", "time")})
    repeated = keys.duplicated().to_numpy(bool)
    if not repeated.any():
        return
    if options.duplicates == "error":
        _refuse_rows(log, repeated, "has the card and time of an earlier row")
        log.hint(DROP_DUPLICATES)
        return
    for noun in recorded:
        p = log.columns[noun]
        first = p.groupby([keys["card"], keys["time"]], sort=False, dropna=False).transform("first")
        other = (p.notna() & (p != first)).to_numpy(bool)
        what = f"{log.names[noun]}: another prediction than in an earlier row of the review"
        _refuse_rows(log, other, what, log.names[noun])
    log.left_out["card and time of an earlier row"] = int(repeated.sum())
    log.take(~repeated)


def _refuse_rows(log: Draft, rows: BoolArray, what: str, column: str = "") -> None:
    """Note that some rows repeat others."""
    places = [log.place(int(row)) for row in np.flatnonzero(rows)[:_ROWS_QUOTED]]
    if places:
        further = int(rows.sum()) - len(places)
        more = f" and {further:,} further" if further else ""
        said = f"{', '.join(places)}{more}: {what}"
        log.violations.append(Violation(said, "duplicate", column, places))


def _read_recorded(log: Draft, noun: str) -> None:
    """Replace a column of predictions by numbers, NaN where there is none."""
    column = log.columns[noun]
    p = numbers(column)
    unreadable = column.notna().to_numpy(bool) & ~np.isfinite(p)
    outside = np.isfinite(p) & ((p < 0) | (p > 1))
    log.refuse(noun, unreadable, _PROBABILITY)
    log.refuse(noun, outside, _PROBABILITY, "out_of_range")
    if outside.any() and (p[outside] > 1).all() and p[outside].max() <= 100:
        log.hint("Divide percentages by 100.")
    log.columns[noun] = pd.Series(np.where(unreadable | outside, np.nan, p))


def _require_recorded_before(
    log: Draft, answered: IntArray, options: TableOptions, recorded: list[str]
) -> None:
    """Refuse predictions that were stored after the answer, in microseconds since 1970 [n]."""
    column = log.columns["recorded_at"]
    times = read_times(column, unit=options.time_unit, time_zone=options.time_zone)
    has_any = np.any([log.columns[noun].notna() for noun in recorded], axis=0)
    is_there, unreadable = column.notna().to_numpy(bool), times.unreadable | times.skipped
    log.refuse("recorded_at", has_any & ~is_there, "a time wherever there is a prediction")
    log.refuse("recorded_at", is_there & unreadable, times.expected)
    late = has_any & is_there & ~unreadable & (times.late | (times.microseconds > answered))
    expected = "no time after the answer: a prediction stored later may know it"
    log.refuse("recorded_at", late, expected, "order")
    if late.any():
        log.hint(_CHECK_ZONE)


def _fill_first_intervals(log: Draft) -> None:
    """Mark an empty interval at a card's first review as a first review."""
    for noun in ("elapsed_days", "elapsed_seconds"):
        column = log.columns.get(noun)
        if column is not None and column.isna().any():
            first = previous_review(pd.factorize(log.columns["card"])[0].astype(np.int64)) == FIRST
            log.columns[noun] = column.mask(first & column.isna(), FIRST)
