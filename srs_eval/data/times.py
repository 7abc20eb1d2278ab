"""Read times of review, and cut them into the days of a person."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pandas as pd

from srs_eval.data.columns import numbers, texts
from srs_eval.nouns import BoolArray, FloatArray, IntArray

TimeUnit = Literal["auto", "iso", "s", "ms"]
TIME_UNITS: tuple[str, ...] = get_args(TimeUnit)

_MICROSECONDS = {"s": 1_000_000.0, "ms": 1_000.0}
_UNITS = {"s": "seconds", "ms": "milliseconds"}
_TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_DAY = 86_400_000_000
_EARLIEST = 315_532_800_000_000  # 1980, before which there was no such program
_CENTURY = 36_525 * _DAY
_DATE = r"[0-9]{4}-?(?:[0-9]{2}|W)"
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
    latest = time.time_ns() // 1000 + _DAY  # of clocks that are a little fast, or zones
    if unit == "iso":
        instants, bad = _from_iso(values, time_zone, latest)
        expected = "an ISO-8601 time such as 2024-03-29T20:32:32Z, from 1980 to now"
        return Times(instants, bad, expected)
    readings = numbers(values)
    if unit != "auto":
        return _counted(readings, unit, latest)
    found = _detected(readings, latest)
    if found is not None:
        return _counted(readings, found, latest)
    return Times(
        np.zeros(len(readings), np.int64),
        np.ones(len(readings), bool),
        "seconds or milliseconds since 1970, from 1980 to now (if it is one of them, set "
        "data.time_unit=s or ms; if it is a day number, give the column as data.columns.day)",
    )


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


def _counted(readings: FloatArray, unit: Literal["s", "ms"], latest: int) -> Times:
    """Read numbers of a unit: since 1970, or since any moment if they begin near 0."""
    scaled = readings * _MICROSECONDS[unit]
    present = scaled[np.isfinite(scaled)]
    earliest = _EARLIEST
    if len(present) and 0 <= present.min() < _DAY:
        # A clock without a time zone.
        earliest, latest = 0, _CENTURY
    good = (scaled >= earliest) & (scaled <= latest)
    expected = f"{_UNITS[unit]} since 1970, from 1980 to now (or since the first review)"
    return Times(np.where(good, np.rint(scaled), 0).astype(np.int64), ~good, expected)


def _detected(readings: FloatArray, latest: int) -> Literal["s", "ms"] | None:
    """Return the unit of numbers since 1970, by their size; None if it is ambiguous."""
    present = readings[np.isfinite(readings)]
    if len(present):
        # The two ranges do not overlap before the year 11,000. Most decide: the others are bad.
        middle = float(np.median(present))
        if _EARLIEST <= middle * _MICROSECONDS["s"] <= latest:
            return "s"
        if _EARLIEST <= middle * _MICROSECONDS["ms"] <= latest:
            return "ms"
    return None


def _from_iso(values: pd.Series, time_zone: str, latest: int) -> tuple[IntArray, BoolArray]:
    """Read ISO-8601 text or date-times; those without an offset are local."""
    if values.dtype.kind == "M":
        utc = _in_utc(_within(values, latest), time_zone)
    else:
        # Words such as "now" are times to pandas, but other ones tomorrow.
        text = texts(values)
        text = text.where(text.str.match(_DATE, na=False))
        has_offset = text.str.contains(_OFFSET, na=False)
        utc = _within(_parsed(text.where(has_offset), utc=True), latest)
        if not has_offset.all():
            local = _within(_parsed(text.mask(has_offset), utc=False), latest)
            utc = utc.where(has_offset, _in_utc(local, time_zone))
    utc = _within(utc, latest, margin=0)
    bad = utc.isna().to_numpy(bool)
    instants = utc.dt.tz_localize(None).to_numpy("datetime64[us]").astype(np.int64)
    return np.where(bad, 0, instants), bad


def _parsed(text: pd.Series, *, utc: bool) -> pd.Series:
    """Read ISO-8601 text; NaT where it is not."""
    parsed: pd.Series = pd.to_datetime(text, format="ISO8601", utc=utc, errors="coerce")
    return parsed


def _within(values: pd.Series, latest: int, *, margin: int = _DAY) -> pd.Series:
    """Replace date-times outside the range, which a zone could carry out of what fits, by NaT."""
    plain = values if values.dt.tz is None else values.dt.tz_convert("UTC").dt.tz_localize(None)
    array = plain.to_numpy()
    ticks, per_second = array.view(np.int64), _TICKS[np.datetime_data(array.dtype)[0]]
    # In the column's own unit: a time of the year 100,000 does not fit into microseconds.
    low, high = (bound * per_second // 1_000_000 for bound in (_EARLIEST - margin, latest + margin))
    return values.where(plain.notna().to_numpy() & (ticks >= low) & (ticks <= high))


def _in_utc(values: pd.Series, time_zone: str) -> pd.Series:
    """Convert date-times to UTC; of an hour that occurs twice, the first is meant."""
    if values.dt.tz is None:
        first = np.ones(len(values), bool)
        values = values.dt.tz_localize(time_zone, ambiguous=first, nonexistent="shift_forward")
    utc: pd.Series = values.dt.tz_convert("UTC")
    return utc
