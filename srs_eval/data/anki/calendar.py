"""When the days of an Anki collection begin."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from srs_eval.data.anki.database import DAY_SECONDS, damaged
from srs_eval.errors import ReviewLogError

MINUTES_FROM_UTC = 840
_DEFAULT_ROLLOVER_HOUR = 4


def day_start(
    source: str,
    created: int,
    settings: Mapping[str, Any],
    *,
    version: int,
    rollover_hour: int | None,
    utc_offset_minutes: int | None,
) -> tuple[int, str]:
    """Return the second of the UTC day at which days begin, and what says so.

    Version 1 of the scheduler counts days from the creation stamp. Later versions begin them at the
    rollover hour, in the time zone that the collection records: where it was last used, or else
    where it was created. An hour and an offset that are given take the place of what is recorded;
    `source` is named in errors.
    """
    recorded = next((name for name in ("localOffset", "creationOffset") if name in settings), None)
    has_zone = recorded is not None or utc_offset_minutes is not None
    if rollover_hour is None and (version == 1 or not has_zone):
        # Before it recorded time zones, Anki set the creation stamp to the rollover hour.
        if created // DAY_SECONDS not in range(10 * 365, 230 * 365):
            raise damaged(source, f"its creation stamp is {created}, no time from 1980 to 2200")
        stamp = f"{datetime.fromtimestamp(created, UTC):%Y-%m-%d %H:%M}"
        return created % DAY_SECONDS, f"time of the creation stamp, {stamp}"
    if rollover_hour is not None:
        hour, named = rollover_hour, f"data.rollover_hour={rollover_hour}"
    elif "rollover" in settings:
        hour = _setting(source, settings, "rollover", 23, "data.rollover_hour") % 24
        named = f"rollover {hour}:00 of the collection"
    else:
        hour = _DEFAULT_ROLLOVER_HOUR
        named = f"rollover {hour}:00, Anki's default, as none is recorded"
    if utc_offset_minutes is not None:
        west, zone = -utc_offset_minutes, f"data.utc_offset_minutes={utc_offset_minutes}"
    elif recorded is not None:
        west = _setting(source, settings, recorded, MINUTES_FROM_UTC, "data.utc_offset_minutes")
        hours, minutes = divmod(abs(west), 60)
        zone = f"UTC{'-' if west > 0 else '+'}{hours:02}:{minutes:02}, setting {recorded}"
    else:
        what = f"its time zone is not recorded, so {hour}:00 may be any time"
        raise ReviewLogError(source, [what], "Give data.utc_offset_minutes as well.")
    return (hour * 3600 + west * 60) % DAY_SECONDS, f"{named}; {zone}"


def _setting(source: str, settings: Mapping[str, Any], name: str, most: int, option: str) -> int:
    """Return a setting that has to be a whole number, at `most` this far from 0."""
    value = settings[name]
    if type(value) is not int or abs(value) > most:
        what = (
            f"setting {name} is {str(value)[:40]!r}; expected a whole number from -{most} to {most}"
        )
        hint = "Set in Anki's preferences when the next day starts and export it again"
        raise ReviewLogError(source, [what], f"{hint}, or give {option}.")
    return int(value)
