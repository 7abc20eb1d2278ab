"""Times in all their spellings, the bounds of what can be one, and the days they are cut into."""

import time
from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from srs_eval.data.times import day_numbers, read_times

MOMENT = datetime(2024, 3, 29, 20, 32, 32, 250_000, tzinfo=UTC)
MICROSECONDS = 1_711_744_352_250_000
SPELLINGS = [
    *("2024-03-29T20:32:32.250000+00:00", "2024-03-29T20:32:32.250Z", "2024-03-29 20:32:32.25"),
    *("2024-03-29T22:32:32.25+02:00", "2024-03-29T15:32:32.25-0500", "20240329T203232.250Z"),
    *(" 2024-03-29T20:32:32.250Z ", 1_711_744_352_250, 1_711_744_352.25, "1711744352250"),
    *(MOMENT, MOMENT.replace(tzinfo=None), MOMENT.astimezone(timezone(timedelta(hours=-3)))),
]
VIENNA = "Europe/Vienna"


def read(values, *, unit="auto", time_zone="UTC"):
    return read_times(pd.Series(values), unit=unit, time_zone=time_zone)


def instants(times):
    return [datetime.fromtimestamp(time / 1e6, UTC) for time in times.microseconds.tolist()]


def test_every_way_to_write_a_moment_means_the_same():
    for value in SPELLINGS:
        times = read([value])
        assert not times.bad.any(), value
        assert times.microseconds.tolist() == [MICROSECONDS], value
    mixed = read([*SPELLINGS[:7], "2024-03-29 20:32"])
    assert not mixed.bad.any()
    assert (np.diff(mixed.microseconds) == [*[0] * 6, -32_250_000]).all()


def test_times_without_an_offset_are_local_also_in_hours_that_occur_twice_or_never():
    local = ["2024-03-29T21:32:32.25", "2024-07-01", "2024-10-27T02:30", "2024-03-31T02:30"]
    assert instants(read(local, time_zone=VIENNA)) == [
        MOMENT,
        *(datetime(2024, 6, 30, 22, tzinfo=UTC), datetime(2024, 10, 27, 0, 30, tzinfo=UTC)),
        datetime(2024, 3, 31, 1, tzinfo=UTC),
    ]


# Values in seconds since 1970, the unit, and what each is: good, early, late or unreadable.
NUMBERS = [
    ([1_711_744_352, 1_711_744_353], "auto", "gg"),
    ([1_711_744_352, None, 1_711_744_353], "auto", "gug"),
    ([1_711_744_352, 1_711_744_353, 33_000_000_000, 99_999, None], "auto", "ggleu"),
    ([315_532_800, 315_532_799, 1_711_744_352], "auto", "geg"),
    ([*range(1_711_744_352, 1_711_744_361), 0], "auto", "ggggggggge"),
    ([*range(1_711_744_352, 1_711_744_361), 0], "s", "ggggggggge"),
    ([0, 1, 7], "auto", "uuu"),  # could be anything
    ([0, 1, 7], "s", "ggg"),  # a clock of its own
    ([86_399, 86_400, 86_401, 36_525 * 86_400, 36_525 * 86_400 + 1], "s", "ggggl"),
    ([86_400, 172_800], "s", "ee"),
    ([-5, 1_711_744_352], "s", "eg"),
    ([0, 1_711_744_352_000], "s", "el"),
    ([1_711_744_352_000_000, 1_711_844_352_000_000], "auto", "uu"),
]


@pytest.mark.parametrize("factor", [1, 1000], ids=["seconds", "milliseconds"])
def test_numbers_are_times_of_their_unit_and_impossible_ones_are_named(factor):
    for values, unit, kinds in NUMBERS:
        scaled = [None if value is None else value * factor for value in values]
        times = read(scaled, unit="ms" if (unit, factor) == ("s", 1000) else unit)
        for mark, found in (("e", times.early), ("l", times.late), ("u", times.unreadable)):
            assert found.tolist() == [kind == mark for kind in kinds], (values, unit, mark)
        good = [value * 1_000_000 for value, kind in zip(values, kinds, strict=True) if kind == "g"]
        assert times.microseconds[~times.bad].tolist() == good
    assert read([1_711_744_352, 1_711_744_352_250]).bad.any()  # of either unit


@pytest.mark.parametrize("form", ["iso", "number", "date-time"])
def test_times_from_1980_to_tomorrow_are_possible(form):
    now = time.time()
    seconds = [315_532_799, 315_532_800, 1_711_744_352, now + 86_300, now + 86_500]
    moments = [datetime.fromtimestamp(each, UTC) for each in seconds]
    times = read(
        {"iso": [each.isoformat() for each in moments], "number": seconds}.get(form, moments)
    )
    assert times.early.tolist() == [True, False, False, False, False]
    assert times.late.tolist() == [False, False, False, False, True]


def test_unreadable_times_are_marked_one_by_one():
    times = read(["2024-03-29T20:32:32Z", "tomorrow", None, "2024-13-01", "2024", "now"])
    assert times.unreadable.tolist() == [False, *[True] * 5]
    assert "ISO-8601" in times.expected
    assert "data.columns.day" in read([0, 1, 7]).expected


# A second before a day begins and then, in winter and in summer; and 02:45 and 02:15 again.
@example([datetime(2024, 1, 10, 2, 59, 59), datetime(2024, 1, 10, 3)], 4, VIENNA)
@example([datetime(2024, 7, 10, 1, 59, 59), datetime(2024, 7, 10, 2)], 4, VIENNA)
@example([datetime(2024, 10, 27, 0, 45), datetime(2024, 10, 27, 1, 15)], 2.5, VIENNA)
@settings(deadline=None)
@given(
    st.lists(st.datetimes(datetime(1990, 1, 1), datetime(2050, 1, 1)), min_size=1, max_size=20),
    st.sampled_from([0, 0.25, 4, 4.5, 4.74, 23, 23.99]),
    st.sampled_from(["UTC", VIENNA, "Asia/Kolkata", "America/New_York"]),
)
def test_days_equal_a_plain_loop(moments, hour, zone):
    moments = sorted(moment.replace(tzinfo=UTC, microsecond=0) for moment in moments)
    dates = []
    for moment in moments:
        local = moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
        dates.append((local - timedelta(seconds=round(hour * 3600))).date())
    # Where a clock is put back, the day that has begun goes on.
    expected = [(max(dates[: n + 1]) - date(1970, 1, 1)).days for n in range(len(dates))]
    instants = np.array([int(moment.timestamp()) * 1_000_000 for moment in moments], np.int64)
    assert day_numbers(instants, time_zone=zone, day_start_hour=hour).tolist() == expected
