"""Which rows of Anki's review table are reviews, each other row with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from srs_eval.data.anki.database import Revlog
from srs_eval.nouns import BoolArray, IntArray

LEARNING, FILTERED, MANUAL, RESCHEDULED = 0, 3, 4, 5

BY_HAND = "set by hand (due date or reset)"
BY_ANKI = "rescheduled by Anki"
NO_BUTTON = "no button pressed"
CRAMMING = "filtered deck without rescheduling"
BEFORE_START = "before the card was last learnt from the start"
NO_START = "card without a learning step"
INVALID = "invalid values"


@dataclass(frozen=True, slots=True)
class Selection:
    """Rows that are reviews, their states, and how many other rows there are of which kind."""

    rows: IntArray  # [k]: Row numbers into the review table, ascending
    state: IntArray  # [k]: 0 new, 1 learning, 2 review, 3 relearning, 4 filtered
    left_out: Mapping[str, int]  # Reasons that occur; with `rows` they account for every row


def select_reviews(revlog: Revlog, valid: BoolArray) -> Selection:
    """Choose the `valid` rows that are reviews by the rules of the public data set.

    Kept are answers that count for scheduling: a button was pressed, and not in a filtered deck
    that leaves the schedule alone. Of each card only what follows its last learning start is kept:
    the last learning step whose row before is of another kind. A reset in between begins a card
    anew even in the middle of its learning steps, as it does in Anki's own optimizer; the data set
    overlooks it there. Cards that were never in learning have lost their beginning and are left
    out.

    After ``build_parquet.py`` of open-spaced-repetition/anki-revlogs-dataset-builder and
    ``reviews_for_fsrs`` in Anki's ``rslib/src/scheduler/fsrs/params.rs``.
    """
    by_hand = valid & (revlog.type == MANUAL)
    by_anki = valid & (revlog.type == RESCHEDULED)
    button = valid & ~by_hand & ~by_anki & (revlog.ease > 0)
    cramming = button & (revlog.type == FILTERED) & (revlog.factor == 0)
    counted = button & ~cramming
    reset = by_hand & (revlog.factor == 0)
    position = _position(revlog, counted, reset)
    kept = position >= 0
    reasons = {
        BY_HAND: by_hand,
        BY_ANKI: by_anki,
        NO_BUTTON: valid & ~by_hand & ~by_anki & ~button,
        CRAMMING: cramming,
        BEFORE_START: counted & (position == _BEFORE),
        NO_START: counted & (position == _NEVER),
        INVALID: ~valid,
    }
    counts = {reason: int(rows.sum()) for reason, rows in reasons.items()}
    rows = np.flatnonzero(kept)
    return Selection(
        rows=rows,
        state=np.where(position[rows] == 0, 0, revlog.type[rows] + 1),
        left_out={reason: count for reason, count in counts.items() if count},
    )


_BEFORE, _NEVER = -1, -2


def _position(revlog: Revlog, counted: BoolArray, reset: BoolArray) -> IntArray:
    """Rows since the card's last learning start, 0 at the start itself.

    _BEFORE for rows before the start, _NEVER for rows of cards without one and for rows that are
    not counted.
    """
    events = np.flatnonzero(counted | reset)
    events = events[np.argsort(revlog.cid[events], kind="stable")]
    card = revlog.cid[events]
    learning = counted[events] & (revlog.type[events] == LEARNING)
    first = np.ones(len(events), np.bool_)
    first[1:] = card[1:] != card[:-1]
    after_learning = np.zeros(len(events), np.bool_)
    after_learning[1:] = learning[:-1]
    starts = np.flatnonzero(learning & (first | ~after_learning))
    number = np.cumsum(first) - 1
    last_start = np.full(int(first.sum()), len(events))
    # Written in ascending order, so the last start of a card is the one that stays.
    last_start[number[starts]] = starts
    since = np.arange(len(events)) - last_start[number]
    since[since < 0] = _BEFORE
    since[last_start[number] == len(events)] = _NEVER
    position = np.full(len(revlog), _NEVER)
    position[events] = np.where(counted[events], since, _NEVER)
    return position
