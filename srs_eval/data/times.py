"""Times of reviews, and the days of a person that they are cut into."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import pandas as pd

from srs_eval.data.cells import numbers, texts
from srs_eval.data.options import TimeUnit
from srs_eval.nouns import BoolArray, FloatArray, IntArray

_UNITS = {"s": ("seconds", 1.0), "ms": ("milliseconds", 1e3), "us": ("microseconds", 1e6)}
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


@dataclass(frozen=True, slots=True)
class Times:
    """Times of review, and which values are none."""

    microseconds: IntArray  # [n]: since 1970 in UTC; 0 where the value is no time of a review
    unreadable: BoolArray  # [n]: it could not be read
    expected: str  # what would have been readable
    early: BoolArray  # [n]: it is a time before the first that is possible
    late: BoolArray  # [n]: it is a time after the last
    skipped: BoolArray  # [n]: it is a local time that was skipped when clocks were put forward
    earliest: str = "no time before 1980"
    latest: str = "no time in the future"
    existing: str = ""

    @property
    def bad(self) -> BoolArray:
        """Whether it is no time of a review, for any reason."""
        return self.unreadable | self.early | self.late | self.skipped

    @property
    def problems(self) -> list[tuple[BoolArray, str, str, str]]:
        """Rows, kind, what was expected, and what they are instead, for each reason."""
        return [
            (self.unreadable, "wrong_type", self.expected, "time that cannot be read"),
            (self.early, "out_of_range", self.earliest, "time before 1980"),
            (self.late, "out_of_range", self.latest, "time in the future"),
            (self.skipped, "out_of_range", self.existing, "time that its zone does not have"),
        ]


def read_times(values: pd.Series, *, unit: TimeUnit, time_zone: str) -> Times:
    """Read a column of times: ISO-8601 text, date-times, or numbers since 1970.

    The unit ``auto`` looks which they are, and takes numbers only where they cannot be anything but
    seconds, milliseconds or microseconds. Date-times that do not say their zone are in `time_zone`.
    """
    latest = time.time() + _DAY  # of clocks that are a little fast, or zones
    if unit == "auto" and (values.dtype.kind == "M" or not _are_counts(values.dropna())):
        unit = "iso"
    if unit == "iso":
        return _from_iso(values, time_zone, latest)
    counts = numbers(values)
    if unit == "auto":
        # The ranges do not overlap before the year 3,000. Most decide: the others are bad.
        middle = float(np.median(counts[np.isfinite(counts)], axis=None)) if len(counts) else 0.0
        units = [name for name, (_, n) in _UNITS.items() if _EARLIEST <= middle / n <= latest]
        if not units:
            no = np.zeros(len(counts), bool)
            return Times(np.zeros(len(counts), np.int64), ~no, _AMBIGUOUS, no, no, no)
        unit = units[0]  # type: ignore[assignment]
    return _counted(counts, unit, latest)


def _are_counts(values: pd.Series) -> bool:
    """Return whether most values are numbers, of which there are some among the first."""
    if not np.isfinite(numbers(values.iloc[:_LOOKED_AT])).any():
        return False
    return 2 * int(np.isfinite(numbers(values)).sum()) > len(values)


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


def _counted(counts: FloatArray, unit: str, latest: float) -> Times:
    """Read numbers of a unit: since 1970, or since any moment if they begin near 0."""
    name, per_second = _UNITS[unit]
    seconds = counts / per_second
    present, earliest = seconds[np.isfinite(seconds)], _EARLIEST
    words = f"{name} since 1970, not before 1980", f"{name} since 1970, until now"
    if len(present) and 0 <= present.min() < _DAY and np.median(present) < _EARLIEST:
        # A clock without a time zone; a time of 0 among times since 1970 is one that is missing.
        earliest, latest = 0.0, _CENTURY
        words = f"{name} since the first review", "at most a hundred years"
    early, late, unreadable = seconds < earliest, seconds > latest, np.isnan(seconds)
    good = ~(unreadable | early | late)
    microseconds = np.rint(np.where(good, counts, 0) * (1e6 / per_second)).astype(np.int64)
    expected = f"{name} since 1970, from 1980 to now (or since the first review)"
    return Times(microseconds, unreadable, expected, early, late, np.zeros(len(good), bool), *words)


def _from_iso(values: pd.Series, time_zone: str, latest: float) -> Times:
    """Read ISO-8601 text or date-times; those without an offset are local."""
    early, late, skipped = np.zeros((3, len(values)), bool)

    def within(moments: pd.Series, margin: float = _DAY) -> pd.Series:
        """Note what is too early or too late; a zone could carry it out of what fits."""
        naive = moments if moments.dt.tz is None else moments.dt.tz_convert(None)
        ticks = naive.to_numpy()
        # In the column's own unit: a time of the year 100,000 does not fit into microseconds.
        seconds = ticks.astype(np.int64) / _TICKS[np.datetime_data(ticks.dtype)[0]]
        present = ~np.isnat(ticks)
        outside_before = present & (seconds < _EARLIEST - margin)
        outside_after = present & (seconds > latest + margin)
        np.logical_or(early, outside_before, out=early)
        np.logical_or(late, outside_after, out=late)
        is_outside = outside_before | outside_after
        return moments.mask(is_outside) if is_outside.any() else moments

    if values.dtype.kind == "M":
        read = local = within(values)
        has_offset = np.full(len(values), values.dt.tz is not None)
    else:
        text = texts(values)
        text = text.where(text.str.match(_DATE, na=False))
        if text.str.endswith(" UTC", na=False).any():  # as BigQuery writes them
            text = text.str.replace(" UTC", "Z", regex=False)
        has_offset = text.str.contains(_OFFSET, na=False).to_numpy(bool)
        read = within(_parsed(text.where(has_offset), utc=True))
        local = within(_parsed(text.mask(has_offset), utc=False)) if not has_offset.all() else read
    if has_offset.all():
        utc = read.dt.tz_convert("UTC")
    else:
        first = np.ones(len(values), bool)  # of an hour that occurs twice
        known = local.notna().to_numpy(bool)
        local = local.dt.tz_localize(time_zone, ambiguous=first, nonexistent="NaT")
        skipped = known & local.isna().to_numpy(bool) & ~has_offset
        utc = local.dt.tz_convert("UTC")
        utc = read.where(has_offset, utc) if has_offset.any() else utc
    utc = within(utc, margin=0)
    absent = utc.isna().to_numpy(bool)
    instants = utc.dt.tz_localize(None).to_numpy("datetime64[us]").astype(np.int64)
    return Times(
        np.where(absent, 0, instants),
        absent & ~early & ~late & ~skipped,
        "an ISO-8601 time such as 2024-03-29T20:32:32Z",
        early,
        late,
        skipped,
        existing=f"a time that exists in {time_zone}, where clocks were put forward then",
    )


_TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def _parsed(text: pd.Series, *, utc: bool) -> pd.Series:
    """Read ISO-8601 text; NaT where it is not."""
    parsed: pd.Series = pd.to_datetime(text, format="ISO8601", utc=utc, errors="coerce")
    return parsed
