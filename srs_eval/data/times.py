"""Times of reviews, and the days of a person that they are cut into."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd

from srs_eval.data.cells import numbers, texts
from srs_eval.data.options import TableOptions
from srs_eval.data.reviews import IntArray

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
    "seconds, milliseconds or microseconds since 1970, or data.time_unit=s, ms or us; a column of "
    "day numbers is data.columns.day"
)
UNREADABLE, EARLY, LATE, SKIPPED = range(1, 5)
PROBLEMS = (
    *("time that cannot be read", "time before 1980", "time in the future"),
    "time that its zone does not have",
)


def read_times(values: pd.Series, options: TableOptions) -> tuple[IntArray, IntArray, str]:
    """Read a column of times: ISO-8601 text, date-times, or numbers since 1970.

    Return microseconds since 1970 in UTC, [n], which of `PROBLEMS` each value has, from 1, [n], and
    what was expected. The unit ``auto`` looks which they are, and takes numbers only where they
    cannot be anything but seconds, milliseconds or microseconds. Date-times that do not say their
    zone are in `time_zone`.
    """
    unit: str = options.time_unit
    latest = time.time() + _DAY  # of clocks that are a little fast, or zones
    if unit == "iso" or (unit == "auto" and not _are_counts(values)):
        return _from_iso(values, options.time_zone, latest)
    counts = numbers(values)
    if unit == "auto":
        # The ranges do not overlap before the year 3,000. Most decide: the others are bad.
        middle = float(np.median(counts[np.isfinite(counts)]))
        possible = [each for each in _NAMES if _EARLIEST <= middle / _UNITS[each] <= latest]
        if not possible:
            return np.zeros(len(counts), np.int64), np.full(len(counts), UNREADABLE), _AMBIGUOUS
        unit = possible[0]
    seconds, earliest = counts / _UNITS[unit], _EARLIEST
    present = seconds[np.isfinite(seconds)]
    if len(present) and 0 <= present.min() < _DAY and np.median(present) < _EARLIEST:
        # A clock without a time zone; a time of 0 among times since 1970 is one that is missing.
        earliest, latest = 0.0, _CENTURY
    cases = [np.isnan(seconds), seconds < earliest, seconds > latest]
    problem = np.select(cases, [UNREADABLE, EARLY, LATE], 0)
    microseconds = np.rint(np.where(problem > 0, 0, counts) * (1e6 / _UNITS[unit]))
    expected = f"{_NAMES[unit]} since 1970, from 1980 to now, or since the first review"
    return microseconds.astype(np.int64), problem, expected


def _are_counts(values: pd.Series) -> bool:
    """Return whether most of the first values are numbers."""
    first = numbers(values.dropna().iloc[:_LOOKED_AT])
    return bool(2 * np.isfinite(first).sum() > len(first))


def _from_iso(values: pd.Series, time_zone: str, latest: float) -> tuple[IntArray, IntArray, str]:
    """Read ISO-8601 text or date-times; those without an offset are local."""
    if values.dtype.kind == "M":
        is_local = np.full(len(values), values.dt.tz is None)
        moments = (values if is_local.all() else values.dt.tz_convert(None)).to_numpy()
    else:
        text = texts(values)  # of dates too
        text = text.where(text.str.match(_DATE, na=False))
        text = text.str.replace(" UTC", "Z", regex=False)  # as BigQuery writes it
        is_local = ~text.str.contains(_OFFSET, na=False).to_numpy(bool)
        parsed = pd.to_datetime(text, format="ISO8601", utc=True, errors="coerce")
        moments = parsed.dt.tz_convert(None).to_numpy()
    # Not near what is possible; in their own unit, because the year 100,000 has no microseconds.
    seconds = moments.astype(np.int64) / _UNITS[np.datetime_data(moments.dtype)[0]]
    absent, skipped = np.isnat(moments), np.zeros(len(moments), bool)
    far = (seconds < _EARLIEST - _DAY) | (seconds > latest + _DAY)
    near = np.where(far, np.datetime64(0, "s"), moments).astype("datetime64[us]")
    if is_local.any():
        first = np.ones(np.count_nonzero(is_local), bool)  # of an hour that occurs twice
        local = pd.DatetimeIndex(near[is_local])
        local = local.tz_localize(time_zone, ambiguous=first, nonexistent="NaT")
        near[is_local] = local.tz_convert(None).to_numpy()
        skipped = np.isnat(near)
    microseconds = near.astype(np.int64)
    seconds = np.where(far, seconds, microseconds / 1e6)
    cases = [absent, skipped, seconds < _EARLIEST, seconds > latest]
    problem = np.select(cases, [UNREADABLE, SKIPPED, EARLY, LATE], 0)
    expected = f"a time such as 2024-03-29T20:32:32Z (ISO-8601), from 1980 to now, of {time_zone}"
    return np.where(problem > 0, 0, microseconds), problem, expected


def day_numbers(microseconds: IntArray, options: TableOptions) -> IntArray:
    """Count the days of reviews that are sorted by time, int64 [n], from 1970-01-01.

    Takes microseconds since 1970 in UTC, never decreasing. A day begins at `day_start_hour`, from 0
    to below 24, of the local clock of `time_zone`, such as ``Europe/Vienna``. Where the clock is
    put back across that hour, the day that has begun goes on, so that day numbers never decrease.
    """
    utc = pd.DatetimeIndex(microseconds.view("datetime64[us]"), tz="UTC")
    local = utc.tz_convert(options.time_zone).tz_localize(None).as_unit("us").asi8
    shifted = local - round(options.day_start_hour * 3_600_000_000)
    days: IntArray = np.maximum.accumulate(shifted // 86_400_000_000)
    return days
