"""Running counts along each card of a log that is in time order, without a loop."""

from __future__ import annotations

import numpy as np

from srs_eval.nouns import BoolArray, IntArray


def earlier_on_card(card: IntArray, event: BoolArray) -> IntArray:
    """Count, for each review, the events at earlier reviews of the same card.

    Parameters
    ----------
    card : int [n]
        Card of each review, in time order.
    event : bool [n]
        What to count.

    Returns
    -------
    int64 [n]

    Examples
    --------
    >>> import numpy as np
    >>> card = np.array([7, 7, 9, 7])
    >>> earlier_on_card(card, np.array([True, False, True, True])).tolist()
    [0, 1, 0, 1]
    """
    order = np.argsort(card, kind="stable")
    counts = np.cumsum(event[order], dtype=np.int64) - event[order]
    return _restart(counts, card[order], order)


def first_of_card(card: IntArray) -> IntArray:
    """Row number of the first review of each review's card.

    Examples
    --------
    >>> import numpy as np
    >>> first_of_card(np.array([7, 9, 7])).tolist()
    [0, 1, 0]
    """
    _, first, inverse = np.unique(card, return_index=True, return_inverse=True)
    rows: IntArray = first[inverse].astype(np.int64)
    return rows


def _restart(counts: IntArray, card: IntArray, order: IntArray) -> IntArray:
    """Subtract from running counts what they were at each card's first review."""
    begins = np.flatnonzero(np.r_[True, card[1:] != card[:-1]]) if len(card) else order[:0]
    lengths = np.diff(np.r_[begins, len(card)])
    result = np.empty(len(card), np.int64)
    result[order] = counts - np.repeat(counts[begins], lengths)
    return result
