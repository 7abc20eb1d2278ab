"""Read times of review, and cut them into the days of a person."""

from __future__ import annotations

import time
from collections.abc import Iterator
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
    """Times of review as microseconds since 1970 in UTC."""

    microseconds: IntArray  # [n]: 0 where the value is no time of a review
    unreadable: BoolArray  # [n]: it could not be read
    expected: str  # what would have been readable
    early: BoolArray  # [n]: it is a time before the first that is possible
    late: BoolArray  # [n]: it is a time after the last
    # What these two times are, in words.
    earliest: str = "no time before 1980"
    latest: str = "no time in the future"

    @property
    def bad(self) -> BoolArray:
        """Whether it is no time of a review, for any reason."""
        return self.unreadable | self.early | self.late

    @property
    def problems(self) -> Iterator[tuple[BoolArray, str, str]]:
        """Go through the reasons: the rows, what was expected, and what they are instead."""
        yield self.unreadable, self.expected, "time that cannot be read"
        yield self.early, self.earliest, "time before 1980"
        yield self.late, self.latest, "time in the future"


def read_times(values: pd.Series, *, unit: TimeUnit, time_zone: str) -> Times:
    """Read a column of times: ISO-8601 text, date-times, or numbers since 1970.

    The unit ``auto`` looks which they are, and takes numbers only where they cannot be anything but
    seconds or milliseconds. Date-times that do not say their zone are in `time_zone`.
    """
    if unit == "auto" and not _mostly_numbers(values):
        unit = "iso"
    latest = time.time_ns() // 1000 + _DAY  # of clocks that are a little fast, or zones
    if unit == "iso":
        return _from_iso(values, time_zone, latest)
    readings = numbers(values)
    if unit != "auto":
        return _counted(readings, unit, latest)
    found = _detected(readings, latest)
    if found is not None:
        return _counted(readings, found, latest)
    nothing = np.zeros(len(readings), bool)
    return Times(
        np.zeros(len(readings), np.int64),
        ~nothing,
        "seconds or milliseconds since 1970, from 1980 to now (if it is one of them, set "
        "data.time_unit=s or ms; if it is a day number, give the column as data.columns.day)",
        nothing,
        nothing,
    )


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
    since = f"{_UNITS[unit]} since 1970"
    words = (f"{since}, not before 1980", f"{since}, until now")
    if len(present) and 0 <= present.min() < _DAY and np.median(present) < _EARLIEST:
        # A clock without a time zone; a time of 0 among times since 1970 is one that is missing.
        earliest, latest = 0, _CENTURY
        words = (f"{_UNITS[unit]} since the first review", "at most a hundred years")
    early, late = scaled < earliest, scaled > latest
    good = ~np.isnan(scaled) & ~early & ~late
    return Times(
        np.where(good, np.rint(scaled), 0).astype(np.int64),
        np.isnan(scaled),
        f"{_UNITS[unit]} since 1970, from 1980 to now (or since the first review)",
        early,
        late,
        *words,
    )


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


def _from_iso(values: pd.Series, time_zone: str, latest: int) -> Times:
    """Read ISO-8601 text or date-times; those without an offset are local."""
    early, late = np.zeros((2, len(values)), bool)

    def within(found: pd.Series, margin: int = _DAY) -> pd.Series:
        before, after = _outside(found, latest, margin)
        np.logical_or(early, before, out=early)
        np.logical_or(late, after, out=late)
        return found.mask(before | after)

    # First with a day to spare, then in UTC: a zone could carry the first or last time that fits
    # out of what fits.
    if values.dtype.kind == "M":
        utc = _in_utc(within(values), time_zone)
    else:
        # Words such as "now" are times to pandas, but other ones tomorrow.
        text = texts(values)
        text = text.where(text.str.match(_DATE, na=False))
        if text.str.endswith(" UTC", na=False).any():  # as BigQuery writes them
            text = text.str.replace(" UTC", "Z", regex=False)
        has_offset = text.str.contains(_OFFSET, na=False)
        utc = within(_parsed(text.where(has_offset), utc=True))
        if not has_offset.all():
            local = within(_parsed(text.mask(has_offset), utc=False))
            utc = utc.where(has_offset, _in_utc(local, time_zone))
    utc = within(utc, margin=0)
    bad = utc.isna().to_numpy(bool)
    instants = utc.dt.tz_localize(None).to_numpy("datetime64[us]").astype(np.int64)
    expected = "an ISO-8601 time such as 2024-03-29T20:32:32Z"
    return Times(np.where(bad, 0, instants), bad & ~early & ~late, expected, early, late)


def _parsed(text: pd.Series, *, utc: bool) -> pd.Series:
    """Read ISO-8601 text; NaT where it is not."""
    parsed: pd.Series = pd.to_datetime(text, format="ISO8601", utc=utc, errors="coerce")
    return parsed


def _outside(values: pd.Series, latest: int, margin: int) -> tuple[BoolArray, BoolArray]:
    """Return which date-times are too early, and which are too late."""
    plain = values if values.dt.tz is None else values.dt.tz_convert("UTC").dt.tz_localize(None)
    array, known = plain.to_numpy(), plain.notna().to_numpy()
    ticks, per_second = array.view(np.int64), _TICKS[np.datetime_data(array.dtype)[0]]
    # In the column's own unit: a time of the year 100,000 does not fit into microseconds.
    low, high = (bound * per_second // 1_000_000 for bound in (_EARLIEST - margin, latest + margin))
    return known & (ticks < low), known & (ticks > high)


def _in_utc(values: pd.Series, time_zone: str) -> pd.Series:
    """Convert date-times to UTC; of an hour that occurs twice, the first is meant."""
    if values.dt.tz is None:
        first = np.ones(len(values), bool)
        values = values.dt.tz_localize(time_zone, ambiguous=first, nonexistent="shift_forward")
    utc: pd.Series = values.dt.tz_convert("UTC")
    return utc
