"""Times of reviews, and the days of a person that they are cut into."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
import pandas as pd

from srs_eval.data.cells import numbers, texts
from srs_eval.data.options import TimeUnit
from srs_eval.data.reviews import FloatArray, IntArray

# Ticks in a second
_UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds"}
_DAY, _CENTURY = 86_400.0, 36_525 * 86_400.0  # seconds
_EARLIEST = 315_532_800.0  # 1980, before which there was no such program
_LOOKED_AT = 1000
# Words such as "now" are times to pandas, but other ones tomorrow.
_DATE = r"[0-9]{4}-?(?:[0-9]{2}|W)"
_OFFSET = r"[Tt ]\d.*(?:[Zz]|[+-]\d{2}(?::?\d{2})?)$"
_AMBIGUOUS = (
    "seconds, milliseconds or microseconds since 1970, from 1980 to now (if it is one of them, set "
    "data.time_unit=s, ms or us; if it is a day number, give the column as data.columns.day)"
)
UNREADABLE, EARLY, LATE, SKIPPED = range(1, 5)
PROBLEMS = {
    UNREADABLE: "time that cannot be read",
    EARLY: "time before 1980",
    LATE: "time in the future",
    SKIPPED: "time that its zone does not have",
}


class Times(NamedTuple):
    """Times of review, and which values are none."""

    microseconds: IntArray  # [n]: since 1970 in UTC; 0 where the value is no time of a review
    problem: IntArray  # [n]: which of `PROBLEMS` it has, 0 if none
    expected: str


def read_times(values: pd.Series, *, unit: TimeUnit, time_zone: str) -> Times:
    """Read a column of times: ISO-8601 text, date-times, or numbers since 1970.

    The unit ``auto`` looks which they are, and takes numbers only where they cannot be anything but
    seconds, milliseconds or microseconds. Date-times that do not say their zone are in `time_zone`.
    """
    latest = time.time() + _DAY  # of clocks that are a little fast, or zones
    if unit == "iso" or (unit == "auto" and not _are_counts(values)):
        return _from_iso(values, time_zone, latest)
    counts = numbers(values)
    if unit != "auto":
        return _counted(counts, unit, latest)
    # The ranges do not overlap before the year 3,000. Most decide: the others are bad.
    middle = float(np.median(counts[np.isfinite(counts)]))
    for each in _NAMES:
        if _EARLIEST <= middle / _UNITS[each] <= latest:
            return _counted(counts, each, latest)
    return Times(np.zeros(len(counts), np.int64), np.full(len(counts), UNREADABLE), _AMBIGUOUS)


def _are_counts(values: pd.Series) -> bool:
    """Return whether most values are numbers, of which there are some among the first."""
    present = values.dropna()
    if values.dtype.kind == "M" or not np.isfinite(numbers(present.iloc[:_LOOKED_AT])).any():
        return False
    return 2 * int(np.isfinite(numbers(present)).sum()) > len(present)


def _counted(counts: FloatArray, unit: str, latest: float) -> Times:
    """Read numbers of a unit: since 1970, or since any moment if they begin near 0."""
    seconds = counts / _UNITS[unit]
    present, earliest = seconds[np.isfinite(seconds)], _EARLIEST
    expected = f"{_NAMES[unit]} since 1970, from 1980 to now, or since the first review"
    if len(present) and 0 <= present.min() < _DAY and np.median(present) < _EARLIEST:
        # A clock without a time zone; a time of 0 among times since 1970 is one that is missing.
        earliest, latest = 0.0, _CENTURY
    cases = [np.isnan(seconds), seconds < earliest, seconds > latest]
    problem = np.select(cases, [UNREADABLE, EARLY, LATE], 0)
    microseconds = np.rint(np.where(problem > 0, 0, counts) * (1e6 / _UNITS[unit]))
    return Times(microseconds.astype(np.int64), problem, expected)


def _from_iso(values: pd.Series, time_zone: str, latest: float) -> Times:
    """Read ISO-8601 text or date-times; those without an offset are local."""
    if values.dtype.kind == "M":
        has_offset = np.full(len(values), values.dt.tz is not None)
        moments = (values.dt.tz_convert(None) if has_offset.any() else values).to_numpy()
    else:
        text = texts(values)
        text = text.where(text.str.match(_DATE, na=False))
        if text.str.endswith(" UTC", na=False).any():  # as BigQuery does
            text = text.str.replace(" UTC", "Z", regex=False)
        has_offset = text.str.contains(_OFFSET, na=False).to_numpy(bool)
        moments = _parsed(text.where(has_offset))
        if not has_offset.all():
            moments = np.where(has_offset, moments, _parsed(text.mask(has_offset)))
    # Not near what is possible; in their own unit, because the year 100,000 has no microseconds.
    seconds = moments.astype(np.int64) / _UNITS[np.datetime_data(moments.dtype)[0]]
    early = ~np.isnat(moments) & (seconds < _EARLIEST - _DAY)
    late = seconds > latest + _DAY
    moments = np.where(early | late, np.datetime64("NaT"), moments).astype("datetime64[us]")
    is_local, skipped = ~has_offset, np.zeros(len(values), bool)
    if is_local.any():
        local = pd.DatetimeIndex(moments[is_local])
        first = np.ones(len(local), bool)  # of an hour that occurs twice
        utc = local.tz_localize(time_zone, ambiguous=first, nonexistent="NaT").tz_convert(None)
        skipped[is_local] = np.isnat(utc.to_numpy()) & ~np.isnat(moments[is_local])
        moments[is_local] = utc.to_numpy()
    absent, microseconds = np.isnat(moments), moments.astype(np.int64)
    early |= ~absent & (microseconds < _EARLIEST * 1e6)
    late |= ~absent & (microseconds > latest * 1e6)
    problem = np.select(
        [early, late, skipped, absent], [EARLY, LATE, SKIPPED, UNREADABLE], default=0
    )
    expected = (
        "an ISO-8601 time such as 2024-03-29T20:32:32Z, from 1980 to now, that clocks of "
        f"{time_zone} have shown"
    )
    return Times(np.where(problem > 0, 0, microseconds), problem, expected)


def _parsed(text: pd.Series) -> np.ndarray:
    """Read ISO-8601 text, as UTC where it has no offset; NaT where it is not."""
    parsed = pd.to_datetime(text, format="ISO8601", utc=True, errors="coerce")
    return parsed.dt.tz_convert(None).to_numpy("datetime64[us]")


def day_numbers(microseconds: IntArray, *, time_zone: str, day_start_hour: float) -> IntArray:
    """Count the days of reviews that are sorted by time, int64 [n], from 1970-01-01.

    Takes microseconds since 1970 in UTC, never decreasing. A day begins at `day_start_hour`, from 0
    to below 24, of the local clock of `time_zone`, such as ``Europe/Vienna``. Where the clock is
    put back across that hour, the day that has begun goes on, so that day numbers never decrease.
    """
    utc = pd.DatetimeIndex(microseconds.view("datetime64[us]"), tz="UTC")
    local = utc.tz_convert(time_zone).tz_localize(None).as_unit("us").asi8
    shifted = local - round(day_start_hour * 3_600_000_000)
    days: IntArray = np.maximum.accumulate(shifted // 86_400_000_000)
    return days
