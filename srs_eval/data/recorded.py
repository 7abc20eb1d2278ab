"""Read predictions that were stored before the answers, and refuse what cannot be one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from srs_eval.data.columns import numbers
from srs_eval.data.table_options import Reading
from srs_eval.data.times import read_times
from srs_eval.errors import Violation
from srs_eval.nouns import IntArray

if TYPE_CHECKING:
    from srs_eval.data.table_rows import LogRows

_EXPECTED = "a probability from 0 to 1, or nothing"
_PERCENT = "Divide percentages by 100."
_NOT_LATER = "no time after the answer: a prediction stored later may know it"
_ZONES = (
    "Check data.time_zone, which times without an offset refer to, and that data.columns.time is "
    "when the answer was given."
)
_ROWS_QUOTED = 3


def is_recorded(noun: str) -> bool:
    """Return whether a column in use holds recorded predictions."""
    return noun.startswith("p ")


def read_recorded(log: LogRows) -> None:
    """Replace the columns of predictions by numbers, NaN where there is none."""
    for noun in filter(is_recorded, [*log.columns]):
        given = log.columns[noun]
        p = numbers(given)
        unreadable = given.notna().to_numpy(bool) & ~np.isfinite(p)
        outside = np.isfinite(p) & ((p < 0) | (p > 1))
        log.refuse(noun, unreadable, _EXPECTED)
        log.refuse(noun, outside, _EXPECTED, "out_of_range")
        if outside.any() and (p[outside] > 1).all() and p[outside].max() <= 100:
            log.hints.append(_PERCENT)
        log.columns[noun] = pd.Series(np.where(unreadable | outside, np.nan, p))


def require_recorded_before(log: LogRows, answered: IntArray, reading: Reading) -> None:
    """Refuse predictions that were stored after the answer, in microseconds since 1970 [n]."""
    given = log.columns.get("recorded_at")
    if given is None:
        return
    times = read_times(given, unit=reading.time_unit, time_zone=reading.time_zone)
    has_any = np.any(
        [log.columns[noun].notna() for noun in filter(is_recorded, log.columns)], axis=0
    )
    known = given.notna().to_numpy(bool)
    log.refuse("recorded_at", has_any & ~known, "a time wherever there is a prediction")
    log.refuse("recorded_at", known & times.unreadable, times.expected)
    late = has_any & known & ~times.unreadable & (times.late | (times.microseconds > answered))
    log.refuse("recorded_at", late, _NOT_LATER, "order")
    if late.any():
        log.hints.append(_ZONES)


def refuse_two_predictions(log: LogRows) -> None:
    """Refuse rows of one review, sorted by time, with different predictions."""
    key = [log.columns["card"], log.columns["time"]]
    for noun in filter(is_recorded, log.columns):
        p = log.columns[noun]
        first = p.groupby(key, sort=False, dropna=False).transform("first")
        other = np.flatnonzero((p.notna() & (p != first)).to_numpy(bool))
        if len(other):
            places = [log.row_name(int(row)) for row in other[:_ROWS_QUOTED]]
            further = len(other) - len(places)
            more = f" and {further} further" if further else ""
            what = (
                f"{log.names[noun]}: {', '.join(places)}{more}: another prediction of the review "
                "of an earlier row; expected one for each review"
            )
            log.problems.append(Violation(what, "duplicate", log.names[noun], places))
