"""How the review table of a collection is read: its buttons, days, and which rows are reviews."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Le
from pydantic import Strict

from srs_eval.data.anki.database import DAY_SECONDS, Collection, damaged
from srs_eval.data.cards import rows_by_card
from srs_eval.data.cells import listed
from srs_eval.data.reviews import BoolArray, IntArray
from srs_eval.errors import ReviewLogError

VersionOption = Literal["auto"] | Annotated[int, Strict(), Ge(1), Le(2)]
MINUTES_FROM_UTC = 840
LEARNING, FILTERED, MANUAL, RESCHEDULED = 0, 3, 4, 5
ELSEWHERE = "card of another deck or preset"
_NAMED_AT_MOST = 20
# Answers given in Anki 1, which had four buttons, were kept as they were until it died out.
_ANKI_1_GONE_MS = int(datetime(2015, 1, 1, tzinfo=UTC).timestamp() * 1000)
# Whether it may be a package of decks, and the version by its setting and by its answers (or 0).
_UNCLEAR = {(False, 1, 2), (True, 2, 1), (True, 1, 0)}


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
    say_which = (
        "Say which it was: data.scheduler=1 (answers 2 and 3 to cards in learning are Good and "
        "Easy) or data.scheduler=2 (they are Hard and Good; also for version 3)."
    )
    if type(stated) is not int or stated not in (1, 2):
        what = f"setting schedVer is {str(stated)[:40]!r}; expected 1 or 2"
        raise ReviewLogError(collection.source, [what], say_which)
    learning = np.isin(revlog.type, (0, 2))
    easy = np.sum(learning & (revlog.ease == 4) & (revlog.id >= _ANKI_1_GONE_MS))
    # Mostly it is Good that ends learning, 2 in version 1; Hard mostly repeats a step.
    ends = learning & (revlog.ivl > 0)
    twos, threes = (np.sum(ends & (revlog.ease == button)) for button in (2, 3))
    answered, said = 0, f"schedVer={stated}"
    if easy:
        answered = 2
        said += f"; {easy:,} answers in learning are 4 (Easy), which version 1 does not have"
    elif twos > threes:
        answered = 1
        said += f"; learning is ended by {twos:,} answers 2 and {threes:,} answers 3"
    if (collection.is_of_decks, stated, answered) not in _UNCLEAR:
        return max(stated, answered), said  # A card can leave learning with Hard in version 2
    if has_other_meaning(revlog).any():
        what = f"it is not clear which version of Anki's scheduler its answers are of ({said})"
        raise ReviewLogError(collection.source, [what], say_which)
    return stated, f"{said}; no answer depends on it"


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
    zones = [
        (name, settings[name]) for name in ("localOffset", "creationOffset") if name in settings
    ]
    if offset is not None:
        zones = [("data.utc_offset_minutes", -offset)]
    if hour is None and (version == 1 or not zones):
        # Before it recorded time zones, Anki set the creation stamp to the rollover hour.
        created = settings["crt"]
        if created // DAY_SECONDS not in range(10 * 365, 230 * 365):
            what = f"its creation stamp is {created}, no time from 1980 to 2200"
            raise damaged(collection.source, what)
        stamp = f"{datetime.fromtimestamp(created, UTC):%Y-%m-%d %H:%M}"
        return created % DAY_SECONDS, f"time of the creation stamp, {stamp}"
    if not zones:
        what = f"its time zone is not recorded, so {hour}:00 may be any time"
        raise ReviewLogError(collection.source, [what], "Give data.utc_offset_minutes as well.")
    by_hour, begin = "data.rollover_hour", hour
    if begin is None:
        by_hour = "rollover" if "rollover" in settings else "Anki's default"
        begin = settings.get("rollover", 4)
    by_zone, west = zones[0]
    for name, value, most, option in (
        (by_hour, begin, 23, "data.rollover_hour"),
        (by_zone, west, MINUTES_FROM_UTC, "data.utc_offset_minutes"),
    ):
        if type(value) is not int or abs(value) > most:
            wrong = f"setting {name} is {str(value)[:40]!r}"
            what = f"{wrong}; expected a whole number from -{most} to {most}"
            hint = "Set in Anki's preferences when the next day starts and export it again"
            raise ReviewLogError(collection.source, [what], f"{hint}, or give {option}.")
    zone = f"UTC{'-' if west > 0 else '+'}{abs(west) // 60:02}:{abs(west) % 60:02}"
    said = f"{begin % 24}:00 at {zone}: {by_hour}, {by_zone}"
    return (begin % 24 * 3600 + west * 60) % DAY_SECONDS, said


def select_reviews(revlog: Any, wanted: BoolArray) -> tuple[IntArray, IntArray, dict[str, int]]:
    """Choose the rows that are reviews, of cards that are `wanted`, as the public data set does.

    Return their numbers, their states (0 new, 1 learning, 2 review, 3 relearning, 4 filtered), and
    how many other rows there are by the reason for which they are left out.

    Kept are answers with a button, but not in a filtered deck that leaves the schedule alone; of
    each card what follows its last learning start: the last learning step whose row before is of
    another kind. A reset begins a card anew even in the middle of its learning steps, as in Anki's
    own optimizer (``reviews_for_fsrs`` in ``rslib/src/scheduler/fsrs/params.rs``); the data set
    (``build_parquet.py`` of open-spaced-repetition/anki-revlogs-dataset-builder) overlooks it.
    """
    by_hand, button = revlog.type == MANUAL, (revlog.type < MANUAL) & (revlog.ease > 0)
    cramming = button & (revlog.type == FILTERED) & (revlog.factor == 0)
    counted = button & ~cramming
    events = np.flatnonzero(counted | (by_hand & (revlog.factor == 0)))
    cards = rows_by_card(revlog.cid[events])
    learning = counted[events] & (revlog.type[events] == LEARNING)
    start = learning & ~cards.last(learning)
    starts, of_card = np.zeros((2, len(revlog)), np.int64)  # So far, and in all
    starts[events] = cards.earlier(start) + start
    of_card[events] = np.bincount(cards.number, start)[cards.number]
    is_review = counted & (of_card > 0) & (starts == of_card)
    reasons = {
        "set by hand (due date or reset)": by_hand,
        "rescheduled by Anki": revlog.type == RESCHEDULED,
        "no button pressed": (revlog.type < MANUAL) & (revlog.ease == 0),
        "filtered deck without rescheduling": cramming,
        "before the card was last learnt from the start": counted & (starts < of_card),
        "card without a learning step": counted & (of_card == 0),
        ELSEWHERE: is_review & ~wanted,
    }
    rows = np.flatnonzero(is_review & wanted)
    state = revlog.type + 1
    state[events[start]] = 0
    return rows, state[rows], {reason: int(n.sum()) for reason, n in reasons.items() if n.any()}


def matching(
    source: str, option: str, patterns: Sequence[object], names: Mapping[int, str]
) -> list[int]:
    """Return the numbers of the groups whose names match one of the patterns.

    As in Anki's search, upper and lower case are the same, ``*`` and ``?`` stand for any letters
    and any letter, and a deck includes its subdecks. Raise `ReviewLogError` with the names that
    exist if a pattern matches none of them.
    """
    matched: list[int] = []
    wrong = []
    for pattern in patterns:
        glob = f"{pattern}::*".casefold().replace("[", "[[]")  # brackets are letters of names
        numbers = [n for n, name in names.items() if fnmatchcase(f"{name.casefold()}::", glob)]
        matched += numbers
        wrong += [] if numbers else [f"{option}={pattern}: no such name in the collection"]
    if wrong:
        titles = sorted(names.values(), key=str.casefold)
        hint = f"There are: {listed(titles, _NAMED_AT_MOST) or 'no names'}."
        raise ReviewLogError(source, wrong, hint)
    return matched


def scheduled_now(revlog: Any) -> dict[int, int]:
    """Return the whole days after its last answer at which each card is due.

    Cards in learning, with less than a day, and those whose due date was set by hand are left out.
    """
    days = np.where(revlog.type == MANUAL, 0, revlog.ivl)
    last = dict(zip(revlog.cid.tolist(), days.tolist(), strict=True))
    return {card: days for card, days in last.items() if days > 0}
