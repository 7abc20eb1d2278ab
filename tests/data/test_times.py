"""Times in all their spellings, the bounds of what can be one, and the days they are cut into."""

import json
import time
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from srs_eval.data.cells import column_of
from srs_eval.data.options import TableOptions
from srs_eval.data.times import EARLY, LATE, day_numbers, read_times

MOMENT = datetime(2024, 3, 29, 20, 32, 32, 250_000, tzinfo=UTC)
VIENNA = "Europe/Vienna"


def read(values, **options):
    return read_times(column_of(values), TableOptions(**options))


def told(values, **options):
    """Tell the moment that each value is, or what is wrong with it."""
    problems = ("", "unreadable", "early", "late", "skipped")
    microseconds, problem, _ = read(values, **options)
    for moment, number in zip(microseconds.tolist(), problem, strict=True):
        moment = datetime.fromtimestamp(moment / 1e6, UTC)
        yield problems[number] or str(moment.replace(tzinfo=None))


def test_every_spelling_is_a_moment_and_what_is_none_is_told(transcript):
    """Numbers are seconds, and a thousand times as many milliseconds the same."""

    def told_by(unit, time_zone, *words):
        values = [json.loads(word.replace("·", " ")) for word in words]
        found = list(told(values, time_unit=unit, time_zone=time_zone))
        if all(value is None or (isinstance(value, int) and value < 1e15) for value in values):
            thousand = [None if value is None else 1000 * value for value in values]
            assert list(told(thousand, time_unit="ms" if unit == "s" else unit)) == found
        return f"  {', '.join(found)}"

    transcript("times", told_by)
    for value in (MOMENT, MOMENT.replace(tzinfo=None), MOMENT.astimezone(ZoneInfo("Asia/Tokyo"))):
        assert list(told([value])) == [str(MOMENT.replace(tzinfo=None))]
    assert "data.columns.day" in read([0, 1, 7])[2]
    assert "ISO-8601" in read(["tomorrow"])[2]


def test_times_from_1980_to_tomorrow_are_possible():
    now = time.time()
    seconds = [315_532_799, 315_532_800, 1_711_744_352, now + 86_300, now + 86_500]
    moments = [datetime.fromtimestamp(each, UTC) for each in seconds]
    for values in ([each.isoformat() for each in moments], seconds, moments):
        assert read(values)[1].tolist() == [EARLY, 0, 0, 0, LATE]


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
    options = TableOptions(time_zone=zone, day_start_hour=hour)
    assert day_numbers(instants, options).tolist() == expected
