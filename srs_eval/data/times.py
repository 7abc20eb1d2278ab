"""Read times of review, and cut them into the days of a person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pandas as pd

from srs_eval.data.columns import numbers
from srs_eval.nouns import BoolArray, FloatArray, IntArray

TimeUnit = Literal["auto", "iso", "s", "ms"]
TIME_UNITS: tuple[str, ...] = get_args(TimeUnit)

_MICROSECONDS = {"s": 1e6, "ms": 1e3}
# 1973 to the year 5138, in either unit: the two ranges do not overlap.
_PLAUSIBLE = {"s": (1e8, 1e11), "ms": (1e11, 1e14)}
_LARGEST = 2.0**62
_OFFSET = r"[Tt ]\d.*(?:[Zz]|[+-]\d{2}(?::?\d{2})?)$"


@dataclass(frozen=True, slots=True)
class Times:
    """Times of review as microseconds since 1970 in UTC.

    Attributes
    ----------
    microseconds : int64 [n]
        0 where the value could not be read.
    bad : bool [n]
        Whether it could not be read.
    expected : str
        What would have been readable.
    """

    microseconds: IntArray
    bad: BoolArray
    expected: str


def read_times(values: pd.Series, *, unit: TimeUnit, time_zone: str) -> Times:
    """Read a column of times.

    Parameters
    ----------
    values : Series [n]
        ISO-8601 text, date-times, or numbers since 1970.
    unit : {"auto", "iso", "s", "ms"}
        What they are; ``auto`` looks, and takes numbers only where they cannot be anything
        but seconds or milliseconds.
    time_zone : str
        Zone of date-times that do not say theirs.

    Returns
    -------
    Times
    """
    if unit == "auto" and not _mostly_numbers(values):
        unit = "iso"
    if unit == "iso":
        return _from_iso(values, time_zone)
    readings = numbers(values)
    if unit == "auto":
        found = _detected(readings)
        if found is None:
            return Times(
                np.zeros(len(readings), np.int64),
                np.ones(len(readings), bool),
                "seconds or milliseconds since 1970 (if it is one of them, set data.time_unit=s "
                "or ms; if it is a day number, give the column as data.columns.day)",
            )
        unit = found
    scaled = readings * _MICROSECONDS[unit]
    good = np.isfinite(scaled) & (np.abs(scaled) < _LARGEST)
    expected = {"s": "seconds since 1970", "ms": "milliseconds since 1970"}[unit]
    return Times(np.where(good, np.rint(scaled), 0).astype(np.int64), ~good, expected)


def day_numbers(microseconds: IntArray, *, time_zone: str, day_start_hour: float) -> IntArray:
    """Count the days of reviews that are sorted by time, from 0 at the first.

    A day begins at `day_start_hour` of the local clock. Where the clock is put back across
    that hour, the day that has begun goes on.

    Parameters
    ----------
    microseconds : int64 [n]
        Never decreasing, since 1970 in UTC.
    time_zone : str
        Such as ``Europe/Vienna``.
    day_start_hour : float
        From 0 to below 24.

    Returns
    -------
    int64 [n]
        Never decreasing.
    """
    utc = pd.DatetimeIndex(microseconds.view("datetime64[us]"), tz="UTC")
    local = utc.tz_convert(time_zone).tz_localize(None).as_unit("us").asi8
    shifted = local - round(day_start_hour * 3_600_000_000)
    days = np.maximum.accumulate(shifted // 86_400_000_000)
    return days - days[:1]


def _mostly_numbers(values: pd.Series) -> bool:
    """Whether a column holds numbers rather than text or date-times."""
    if values.dtype.kind == "M":
        return False
    present = int(values.notna().sum())
    return int(np.isfinite(numbers(values)).sum()) * 2 > present


def _detected(readings: FloatArray) -> Literal["s", "ms"] | None:
    """Tell the unit of numbers since 1970 by their size; None if it cannot be told."""
    present = readings[np.isfinite(readings)]
    if not len(present):
        return None
    for unit, (low, high) in _PLAUSIBLE.items():
        if low <= present.min() and present.max() < high:
            return "s" if unit == "s" else "ms"
    return None


def _from_iso(values: pd.Series, time_zone: str) -> Times:
    """Read ISO-8601 text or date-times; those without an offset are local."""
    if values.dtype.kind == "M":
        utc = _in_utc(values, time_zone)
    else:
        text = values.astype("str").str.strip()
        has_offset = text.str.contains(_OFFSET, na=False)
        utc = pd.to_datetime(text.where(has_offset), format="ISO8601", utc=True, errors="coerce")
        if not has_offset.all():
            local = pd.to_datetime(text.mask(has_offset), format="ISO8601", errors="coerce")
            utc = utc.where(has_offset, _in_utc(local, time_zone))
    bad = utc.isna().to_numpy(bool)
    instants = utc.dt.tz_localize(None).to_numpy("datetime64[us]").astype(np.int64)
    expected = "an ISO-8601 time such as 2024-03-29T20:32:32Z"
    return Times(np.where(bad, 0, instants), bad, expected)


def _in_utc(values: pd.Series, time_zone: str) -> pd.Series:
    """Convert date-times to UTC; of an hour that occurs twice, the first is meant."""
    if values.dt.tz is None:
        first = np.ones(len(values), bool)
        values = values.dt.tz_localize(time_zone, ambiguous=first, nonexistent="shift_forward")
    utc: pd.Series = values.dt.tz_convert("UTC")
    return utc
