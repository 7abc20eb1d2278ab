"""How a collection is to be read: what its buttons mean, and when its days begin."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Le
from pydantic import Strict

from srs_eval.data.anki.database import DAY_SECONDS, Collection, damaged
from srs_eval.data.reviews import BoolArray
from srs_eval.errors import ReviewLogError

VersionOption = Literal["auto"] | Annotated[int, Strict(), Ge(1), Le(2)]
MINUTES_FROM_UTC = 840
_DEFAULT_ROLLOVER_HOUR = 4
# Answers given in Anki 1, which had four buttons, were kept as they were until it died out.
_ANKI_1_GONE_MS = int(datetime(2015, 1, 1, tzinfo=UTC).timestamp() * 1000)
_SAY_WHICH = (
    "Say which it was: data.scheduler=1 (answers 2 and 3 to cards in learning are Good and Easy) "
    "or data.scheduler=2 (they are Hard and Good; also for version 3)."
)


def scheduler_version(
    collection: Collection, revlog: Any, option: VersionOption
) -> tuple[int, str]:
    """Decide under which version of the scheduler answers were given, and say by what.

    Version 1 had three buttons for cards in learning (1 Again, 2 Good, 3 Easy), versions 2 and 3,
    for both of which 2 is returned, have four. Anki renumbers all earlier answers when the version
    changes, so that its setting ``schedVer`` holds for all of a collection. Packages of decks are
    fresh collections, with the setting of a fresh one whatever the person who exported them had.
    """
    if option != "auto":
        return option, f"data.scheduler={option}"
    stated = collection.settings().get("schedVer", 1)
    if type(stated) is not int or stated not in (1, 2):
        what = f"setting schedVer is {str(stated)[:40]!r}; expected 1 or 2"
        raise ReviewLogError(collection.source, [what], _SAY_WHICH)
    said, is_of_decks = f"schedVer={stated}", collection.is_of_decks
    learning = np.isin(revlog.type, (0, 2))
    easy = np.sum(learning & (revlog.ease == 4) & (revlog.id >= _ANKI_1_GONE_MS))
    # Mostly it is Good that ends learning, 2 in version 1; Hard mostly repeats a step.
    ends = learning & (revlog.ivl > 0)
    twos, threes = (np.sum(ends & (revlog.ease == button)) for button in (2, 3))
    answered, why = 0, ""
    if easy:
        answered = 2
        why = f"{easy:,} answers in learning are 4 (Easy), which version 1 does not have"
    elif twos > threes:
        answered, why = 1, f"learning is ended by {twos:,} answers 2 and {threes:,} answers 3"
    both = f"{said}; {why}" if why else said
    if answered == stated or (not answered and (stated == 2 or not is_of_decks)):
        return stated, both
    # A card can leave learning with Hard if its steps are days.
    if stated == 2 and not is_of_decks:
        return 2, said
    if answered == 2 and is_of_decks:
        return 2, why
    if not has_other_meaning(revlog).any():
        return stated, f"{said}; no answer depends on it"
    what = "it is not clear which version of Anki's scheduler its answers are of"
    raise ReviewLogError(collection.source, [f"{what} ({both})"], _SAY_WHICH)


def has_other_meaning(revlog: Any) -> BoolArray:
    """Mark the answers whose meaning depends on the version, by one in the rating."""
    return np.isin(revlog.type, (0, 2)) & np.isin(revlog.ease, (2, 3))


def day_start(
    collection: Collection, version: int, hour: int | None, offset: int | None
) -> tuple[int, str]:
    """Return the second of the UTC day at which days begin, and what says so.

    Version 1 of the scheduler counts days from the creation stamp. Later versions begin them at the
    rollover hour, in the time zone that the collection records: where it was last used, or else
    where it was created. An `hour` and an `offset` in minutes take the place of what is recorded.
    """
    settings = collection.settings()
    created = settings["crt"]
    recorded = next((name for name in ("localOffset", "creationOffset") if name in settings), None)
    if hour is None and (version == 1 or (recorded is None and offset is None)):
        # Before it recorded time zones, Anki set the creation stamp to the rollover hour.
        if created // DAY_SECONDS not in range(10 * 365, 230 * 365):
            what = f"its creation stamp is {created}, no time from 1980 to 2200"
            raise damaged(collection.source, what)
        stamp = f"{datetime.fromtimestamp(created, UTC):%Y-%m-%d %H:%M}"
        return created % DAY_SECONDS, f"time of the creation stamp, {stamp}"
    by_hour = f"data.rollover_hour={hour}"
    if hour is None and "rollover" in settings:
        hour = _setting(collection, "rollover", 23, "data.rollover_hour") % 24
        by_hour = f"rollover {hour}:00 of the collection"
    elif hour is None:
        hour = _DEFAULT_ROLLOVER_HOUR
        by_hour = f"rollover {hour}:00, Anki's default, as none is recorded"
    zone = f"data.utc_offset_minutes={offset}"
    if offset is None and recorded is not None:
        offset = -_setting(collection, recorded, MINUTES_FROM_UTC, "data.utc_offset_minutes")
        sign, minutes = "-" if offset < 0 else "+", abs(offset)
        zone = f"UTC{sign}{minutes // 60:02}:{minutes % 60:02}, setting {recorded}"
    elif offset is None:
        what = f"its time zone is not recorded, so {hour}:00 may be any time"
        raise ReviewLogError(collection.source, [what], "Give data.utc_offset_minutes as well.")
    return (hour * 3600 - offset * 60) % DAY_SECONDS, f"{by_hour}; {zone}"


def _setting(collection: Collection, name: str, most: int, option: str) -> int:
    """Return a setting that has to be a whole number, at `most` this far from 0."""
    value = collection.settings()[name]
    if type(value) is int and abs(value) <= most:
        return value
    what = f"setting {name} is {str(value)[:40]!r}; expected a whole number from -{most} to {most}"
    hint = "Set in Anki's preferences when the next day starts and export it again"
    raise ReviewLogError(collection.source, [what], f"{hint}, or give {option}.")
