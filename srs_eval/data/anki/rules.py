"""Which rows of Anki's review table are reviews, why others are not, and when each was due."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from srs_eval.data.cards import rows_by_card
from srs_eval.data.cells import listed
from srs_eval.data.reviews import BoolArray, IntArray
from srs_eval.errors import ReviewLogError

LEARNING, FILTERED, MANUAL, RESCHEDULED = 0, 3, 4, 5
ELSEWHERE = "card of another deck or preset"
_NAMED_AT_MOST = 20


def select_reviews(revlog: Any, wanted: BoolArray) -> tuple[IntArray, IntArray, dict[str, int]]:
    """Choose the rows that are reviews by the rules of the public data set.

    Of these, the rows of cards that are `wanted` are taken. Returns their numbers, their states (0
    new, 1 learning, 2 review, 3 relearning, 4 filtered), and how many other rows there are by the
    reason for which they are left out.

    Kept are answers that count for scheduling: a button was pressed, and not in a filtered deck
    that leaves the schedule alone. Of each card only what follows its last learning start is kept:
    the last learning step whose row before is of another kind. A reset in between begins a card
    anew even in the middle of its learning steps, as it does in Anki's own optimizer; the data set
    overlooks it there. Cards that were never in learning have lost their beginning and are left
    out.

    After ``build_parquet.py`` of open-spaced-repetition/anki-revlogs-dataset-builder and
    ``reviews_for_fsrs`` in Anki's ``rslib/src/scheduler/fsrs/params.rs``.
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
        names_there = listed(titles, _NAMED_AT_MOST) or "no names"
        raise ReviewLogError(source, wrong, f"There are: {names_there}.")
    return matched


def scheduled_now(revlog: Any) -> dict[int, int]:
    """Return the whole days after its last answer at which each card is due.

    Cards in learning, with less than a day, and those whose due date was set by hand are left out.
    """
    days = np.where(revlog.type == MANUAL, 0, revlog.ivl)
    last = dict(zip(revlog.cid.tolist(), days.tolist(), strict=True))
    return {card: days for card, days in last.items() if days > 0}
