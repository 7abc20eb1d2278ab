"""Intervals between the reviews of each card of a log that is in time order."""

from __future__ import annotations

from typing import TypeVar

from srs_eval.cards import rows_by_card
from srs_eval.nouns import FloatArray, IntArray

Clock = TypeVar("Clock", IntArray, FloatArray)

FIRST = -1


def previous_review(card: IntArray) -> IntArray:
    """Row number of the card's previous review, -1 where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> previous_review(np.array([7, 9, 7, 7])).tolist()
    [-1, -1, 0, 2]
    """
    return rows_by_card(card).previous()


def since_previous(clock: Clock, previous: IntArray) -> Clock:
    """Subtract from each clock reading the one at the card's previous review.

    Parameters
    ----------
    clock : int64 or float64 [n]
        Day number or seconds of each review.
    previous : int64 [n]
        As `previous_review` returns it.

    Returns
    -------
    int64 or float64 [n]
        -1 at the first review of each card.

    Examples
    --------
    >>> import numpy as np
    >>> since_previous(np.array([0, 0, 3, 3]), np.array([-1, -1, 0, 2])).tolist()
    [-1, -1, 3, 0]
    """
    since = clock - clock[previous]
    since[previous == FIRST] = FIRST
    return since
