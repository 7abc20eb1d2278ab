"""When the days of an Anki collection begin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from srs_eval.data.anki.database import DAY_SECONDS
from srs_eval.data.untrusted_database import damaged
from srs_eval.errors import ReviewLogError

MINUTES_FROM_UTC = 840
_DEFAULT_ROLLOVER_HOUR = 4
_EARLIEST = int(datetime(1980, 1, 1, tzinfo=UTC).timestamp())
_LATEST = int(datetime(2200, 1, 1, tzinfo=UTC).timestamp())


@dataclass(frozen=True, slots=True)
class DayStart:
    """Where days begin."""

    second: int  # Second of the UTC day, from 0 to 86,399
    reason: str  # How it was found

    def __str__(self) -> str:
        """Write it the way it is printed."""
        hours, minutes = divmod(self.second // 60, 60)
        return f"days begin at {hours:02}:{minutes:02} UTC ({self.reason})"


def day_start(
    source: str,
    created: int,
    settings: Mapping[str, Any],
    *,
    version: int,
    rollover_hour: int | None,
    utc_offset_minutes: int | None,
) -> DayStart:
    """Find where the days of a collection begin.

    Version 1 of the scheduler counts days from the creation stamp. Later versions begin them at the
    rollover hour, in the time zone that the collection records: where it was last used, or else
    where it was created. An hour and an offset that are given take the place of what is recorded;
    `source` is named in errors.
    """
    west, zone = _west(source, settings, utc_offset_minutes)
    if rollover_hour is not None:
        hour, named = rollover_hour, f"data.rollover_hour={rollover_hour}"
    # Before it recorded time zones, Anki set the creation stamp to the rollover hour.
    elif version == 1 or west is None:
        if not _EARLIEST <= created <= _LATEST:
            raise damaged(source, f"its creation stamp is {created}, no time from 1980 to 2200")
        stamp = f"{datetime.fromtimestamp(created, UTC):%Y-%m-%d %H:%M}"
        return DayStart(created % DAY_SECONDS, f"time of the creation stamp, {stamp}")
    elif "rollover" in settings:
        hour = _setting(source, settings, "rollover", -23, 23, "data.rollover_hour") % 24
        named = f"rollover {hour}:00 of the collection"
    else:
        hour = _DEFAULT_ROLLOVER_HOUR
        named = f"rollover {hour}:00, Anki's default, as none is recorded"
    if west is None:
        what = f"its time zone is not recorded, so {hour}:00 may be any time"
        raise ReviewLogError(source, [what], "Give data.utc_offset_minutes as well.")
    return DayStart((hour * 3600 + west * 60) % DAY_SECONDS, f"{named}; {zone}")


def _west(
    source: str, settings: Mapping[str, Any], utc_offset_minutes: int | None
) -> tuple[int | None, str]:
    """Find the minutes west of UTC, and say where they are recorded."""
    if utc_offset_minutes is not None:
        return -utc_offset_minutes, f"data.utc_offset_minutes={utc_offset_minutes}"
    for name in ("localOffset", "creationOffset"):
        if name in settings:
            allowed = (-MINUTES_FROM_UTC, MINUTES_FROM_UTC)
            west = _setting(source, settings, name, *allowed, "data.utc_offset_minutes")
            east = f"{'-' if west > 0 else '+'}{abs(west) // 60:02}:{abs(west) % 60:02}"
            return west, f"UTC{east}, setting {name}"
    return None, ""


def _setting(
    source: str, settings: Mapping[str, Any], name: str, low: int, high: int, option: str
) -> int:
    """Return a setting that has to be a whole number in a range."""
    value = settings[name]
    if type(value) is not int or not low <= value <= high:
        expected = f"expected a whole number from {low} to {high}"
        what = f"setting {name} is {str(value)[:40]!r}; {expected}"
        hint = "Set in Anki's preferences when the next day starts and export it again"
        hint += f", or give {option}."
        raise ReviewLogError(source, [what], hint)
    return int(value)
