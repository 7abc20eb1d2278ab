from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srs_eval.data.times import day_numbers, read_times

MOMENT = datetime(2024, 3, 29, 20, 32, 32, 250_000, tzinfo=UTC)
MICROSECONDS = 1_711_744_352_250_000


def read(values, *, unit="auto", time_zone="UTC"):
    return read_times(pd.Series(values), unit=unit, time_zone=time_zone)


@pytest.mark.parametrize(
    "value",
    [
        "2024-03-29T20:32:32.250000+00:00",
        "2024-03-29T20:32:32.250Z",
        "2024-03-29 20:32:32.25",
        "2024-03-29T22:32:32.25+02:00",
        "2024-03-29T15:32:32.25-0500",
        "20240329T203232.250Z",
        " 2024-03-29T20:32:32.250Z ",
        1_711_744_352_250,
        1_711_744_352.25,
        "1711744352250",
        MOMENT,
        MOMENT.replace(tzinfo=None),
        MOMENT.astimezone(timezone(timedelta(hours=-3))),
    ],
    ids=str,
)
def test_every_way_to_write_a_moment_means_the_same(value):
    times = read([value])
    assert not times.bad.any()
    assert times.microseconds.tolist() == [MICROSECONDS]


def test_ways_to_write_a_time_can_be_mixed():
    times = read(["2024-03-29T20:32:32.25Z", "2024-03-29T22:32:32.25+02:00", "2024-03-29 20:32"])
    assert not times.bad.any()
    assert (np.diff(times.microseconds) == [0, -32_250_000]).all()


def test_times_without_an_offset_are_local():
    times = read(["2024-03-29T21:32:32.25", "2024-07-01"], time_zone="Europe/Vienna")
    assert times.microseconds[0] == MICROSECONDS
    summer_midnight = datetime(2024, 6, 30, 22, tzinfo=UTC)
    assert times.microseconds[1] == summer_midnight.timestamp() * 1e6


def test_an_hour_that_occurs_twice_or_never_can_be_read():
    times = read(["2024-10-27T02:30", "2024-03-31T02:30"], time_zone="Europe/Vienna")
    expected = [datetime(2024, 10, 27, 0, 30, tzinfo=UTC), datetime(2024, 3, 31, 1, tzinfo=UTC)]
    assert times.microseconds.tolist() == [moment.timestamp() * 1e6 for moment in expected]


def test_unreadable_times_are_marked_one_by_one():
    times = read(["2024-03-29T20:32:32Z", "tomorrow", None, "2024-13-01"])
    assert times.bad.tolist() == [False, True, True, True]
    assert "ISO-8601" in times.expected
    times = read([1_711_744_352, None, 1_711_744_353])
    assert times.bad.tolist() == [False, True, False]


@pytest.mark.parametrize("unit", ["auto", "s"])
def test_a_missing_time_written_as_0_does_not_begin_the_clock(unit):
    since_1970 = [MICROSECONDS // 1_000_000 + 86_400 * day for day in range(9)]
    times = read([*since_1970, 0], unit=unit)
    assert times.early.tolist() == [False] * 9 + [True]
    assert times.bad.sum() == 1
    assert not read([0, 86_400, 700 * 86_400], unit="s").bad.any()


def test_numbers_that_could_be_anything_are_not_guessed():
    times = read([0, 1, 7])
    assert times.bad.all()
    assert "data.columns.day" in times.expected
    assert read([1_711_744_352, 1_711_744_352_250]).bad.any()
    assert read([0, 1, 7], unit="s").microseconds.tolist() == [0, 1_000_000, 7_000_000]
    assert read([0, 1, 7], unit="ms").microseconds.tolist() == [0, 1000, 7000]


def days(moments, *, time_zone="UTC", day_start_hour=4.0):
    instants = np.array([int(moment.timestamp()) * 1_000_000 for moment in moments], np.int64)
    return day_numbers(instants, time_zone=time_zone, day_start_hour=day_start_hour).tolist()


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.lists(st.datetimes(datetime(1990, 1, 1), datetime(2050, 1, 1)), min_size=1),
    st.integers(0, 23),
)
def test_days_equal_a_plain_loop(moments, hour):
    moments = sorted(moment.replace(tzinfo=UTC, microsecond=0) for moment in moments)
    dates = [(moment - timedelta(hours=hour)).date() for moment in moments]
    assert days(moments, day_start_hour=hour) == [(date - dates[0]).days for date in dates]


def test_days_begin_at_the_local_hour_in_summer_and_winter():
    winter = [datetime(2024, 1, 10, 2, 59, tzinfo=UTC), datetime(2024, 1, 10, 3, 0, tzinfo=UTC)]
    summer = [datetime(2024, 7, 10, 1, 59, tzinfo=UTC), datetime(2024, 7, 10, 2, 0, tzinfo=UTC)]
    assert days(winter, time_zone="Europe/Vienna") == [0, 1]
    assert days(summer, time_zone="Europe/Vienna") == [0, 1]


def test_a_clock_put_back_does_not_bring_back_yesterday():
    before = datetime(2024, 10, 27, 0, 45, tzinfo=UTC)  # 02:45 in Vienna, the first time
    after = datetime(2024, 10, 27, 1, 15, tzinfo=UTC)  # 02:15 again
    assert days([before, after], time_zone="Europe/Vienna", day_start_hour=2.5) == [0, 0]


def test_a_day_can_begin_at_a_half_hour():
    night = datetime(2024, 3, 29, tzinfo=UTC)
    minutes = [4 * 60 + 15, 4 * 60 + 29, 4 * 60 + 30, 4 * 60 + 45]
    moments = [night + timedelta(minutes=each) for each in minutes]
    assert days(moments, day_start_hour=4.5) == [0, 0, 1, 1]
    assert days(moments, day_start_hour=4.25) == [0, 0, 0, 0]
    assert days(moments, day_start_hour=4.74) == [0, 0, 0, 1]
