"""Which rows of Anki's review table are reviews, why others are not, and when each was due."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from srs_eval.cards import previous_review
from srs_eval.data.anki.database import DAY_SECONDS, Revlog
from srs_eval.errors import ReviewLogError
from srs_eval.nouns import BoolArray, IntArray

LEARNING, FILTERED, MANUAL, RESCHEDULED = 0, 3, 4, 5

BY_HAND = "set by hand (due date or reset)"
BY_ANKI = "rescheduled by Anki"
NO_BUTTON = "no button pressed"
CRAMMING = "filtered deck without rescheduling"
BEFORE_START = "before the card was last learnt from the start"
NO_START = "card without a learning step"
INVALID = "invalid values"
ELSEWHERE = "card of another deck or preset"
_SUBDECK = "::"
_NAMED_AT_MOST = 20


@dataclass(frozen=True, slots=True)
class Selection:
    """Rows that are reviews, their states, and how many other rows there are of which kind."""

    rows: IntArray  # [k]: Row numbers into the review table, ascending
    state: IntArray  # [k]: 0 new, 1 learning, 2 review, 3 relearning, 4 filtered
    left_out: Mapping[str, int]  # Reasons that occur; with `rows` they account for every row


def select_reviews(revlog: Revlog, valid: BoolArray, wanted: BoolArray) -> Selection:
    """Choose the `valid` rows that are reviews by the rules of the public data set.

    Of these, the rows of cards that are `wanted` are taken.

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
        ELSEWHERE: kept & ~wanted,
    }
    counts = {reason: int(rows.sum()) for reason, rows in reasons.items()}
    rows = np.flatnonzero(kept & wanted)
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


def patterns_of(wanted: object) -> tuple[str, ...] | None:
    """Return the patterns of an option that takes one name or several; None if it is no such."""
    names = wanted if isinstance(wanted, Sequence) and not isinstance(wanted, str) else [wanted]
    if wanted is None:
        return ()
    # A name such as 2024 is read as a number.
    are_names = all(isinstance(name, str | int) and not isinstance(name, bool) for name in names)
    return tuple(map(str, names)) if are_names else None


def matching(
    source: str, option: str, patterns: Sequence[str], names: Mapping[int, str]
) -> set[int]:
    """Return the numbers of the groups whose names match one of the patterns.

    As in Anki's search, upper and lower case are the same, ``*`` and ``?`` stand for any letters
    and any letter, and a deck includes its subdecks. Raise `ReviewLogError` with the names that
    exist if a pattern matches none of them.
    """
    found: set[int] = set()
    unmatched = []
    for pattern in patterns:
        matched = {number for number, name in names.items() if _matches(name, pattern)}
        found |= matched
        if not matched:
            unmatched.append(f"{option}={pattern}: no such name in the collection")
    if unmatched:
        known = sorted(names.values(), key=str.casefold)
        more = len(known) - _NAMED_AT_MOST
        listed = ", ".join(known[:_NAMED_AT_MOST]) + (f" and {more} more" if more > 0 else "")
        raise ReviewLogError(source, unmatched, f"There are: {listed or 'no names'}.")
    return found


def _matches(name: str, pattern: str) -> bool:
    # Brackets are letters of names, as in Anki.
    name, glob = name.casefold(), pattern.casefold().replace("[", "[[]")
    return fnmatchcase(name, glob) or fnmatchcase(name, f"{glob}{_SUBDECK}*")


def scheduled_days(revlog: Revlog) -> IntArray:
    """Return the whole days after its last answer at which each row was due, int64 [n].

    Takes the whole table in time order. A value is 0 for steps of less than a day, and -1 for the
    first row of a card and where the due date was set by hand.
    """
    previous = previous_review(revlog.cid)
    given = revlog.ivl[previous]  # of the last answer, or of a rescheduling since then
    days: IntArray = np.where(given >= 0, given, -given // DAY_SECONDS)
    days[(previous < 0) | (revlog.type[previous] == MANUAL)] = -1
    return days


def scheduled_now(revlog: Revlog) -> dict[int, int]:
    """Return the whole days after its last answer at which each card is due.

    Cards in learning, with less than a day, and those whose due date was set by hand are left out.
    """
    card, place = np.unique(revlog.cid[::-1], return_index=True)
    last = len(revlog) - 1 - place
    known = (revlog.ivl[last] > 0) & (revlog.type[last] != MANUAL)
    return dict(zip(card[known].tolist(), revlog.ivl[last][known].tolist(), strict=True))
