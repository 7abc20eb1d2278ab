"""Intervals between the reviews of each card of a log that is in time order."""

from __future__ import annotations

from typing import TypeVar

from srs_eval.cards import rows_by_card
from srs_eval.nouns import FloatArray, IntArray

Clock = TypeVar("Clock", IntArray, FloatArray)

FIRST = -1


def previous_review(card: IntArray) -> IntArray:
    """Return the row number of each card's previous review, int64 [n], -1 where there is none.

    >>> import numpy as np
    >>> previous_review(np.array([7, 9, 7, 7])).tolist()
    [-1, -1, 0, 2]
    """
    return rows_by_card(card).previous()


def since_previous(clock: Clock, previous: IntArray) -> Clock:
    """Subtract from each clock reading, [n], the one at the card's previous review.

    The clock is the day number or the seconds of each review; `previous` is what `previous_review`
    returns. The difference is -1 at the first review of each card.

    >>> import numpy as np
    >>> since_previous(np.array([0, 0, 3, 3]), np.array([-1, -1, 0, 2])).tolist()
    [-1, -1, 3, 0]
    """
    since = clock - clock[previous]
    since[previous == FIRST] = FIRST
    return since
