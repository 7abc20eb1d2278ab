"""Reviews ordered so that all cards are walked at once, review by review."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from srs_eval.nouns import IntArray


@dataclass(frozen=True, slots=True)
class Lanes:
    """Reviews in the order first, second, third ... review of every card.

    Cards keep their lane throughout and longer cards have lower lanes, so the k-th reviews
    of all cards are one contiguous run, and the cards that have one are a prefix of the
    cards that had a (k-1)-th. Nothing is padded.

    Attributes
    ----------
    rows : int64 [n]
        Row number of the review at each place.
    starts : int64 [longest card + 1]
        The k-th reviews (k from 0) take places ``starts[k]`` to ``starts[k + 1]``.
    """

    rows: IntArray
    starts: IntArray

    def __len__(self) -> int:
        """Count the reviews."""
        return len(self.rows)

    def __iter__(self) -> Iterator[slice]:
        """Yield the places of all first reviews, then of all second reviews, and so on."""
        for start, stop in zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True):
            yield slice(start, stop)


def lanes(card: IntArray, until: IntArray | None = None) -> Lanes:
    """Arrange reviews in lanes.

    Parameters
    ----------
    card : int [n]
        Card of each review, in time order.
    until : int [m], optional
        Row numbers. Cards without one of them are left out, and so is all that comes after
        a card's last of them. By default everything is kept.

    Examples
    --------
    >>> import numpy as np
    >>> arranged = lanes(np.array([7, 9, 7, 8, 7, 9]))
    >>> [arranged.rows[places].tolist() for places in arranged]
    [[0, 1, 3], [2, 5], [4]]
    >>> lanes(np.array([7, 9, 7, 8, 7, 9]), until=np.array([2])).rows.tolist()
    [0, 2]
    """
    order, lengths = _by_card(card, until)
    firsts = np.cumsum(lengths) - lengths
    nth = np.arange(len(order)) - np.repeat(firsts, lengths)
    starts = np.r_[0, np.cumsum(np.bincount(nth))]
    lane = np.empty(len(lengths), np.int64)
    lane[np.argsort(-lengths, kind="stable")] = np.arange(len(lengths))
    rows = np.empty(len(order), np.int64)
    rows[starts[nth] + np.repeat(lane, lengths)] = order
    return Lanes(rows, starts)


def _by_card(card: IntArray, until: IntArray | None) -> tuple[IntArray, IntArray]:
    """Row numbers grouped by card and in time order, and how many each card has."""
    order = np.argsort(card, kind="stable")
    if len(order) == 0:
        return order, order
    grouped = card[order]
    begins = np.flatnonzero(np.r_[True, grouped[1:] != grouped[:-1]])
    lengths = np.diff(np.r_[begins, len(order)])
    if until is None:
        return order, lengths
    wanted = np.full(len(order), -1)
    wanted[until] = until
    last = np.maximum.reduceat(wanted[order], begins)
    kept = order <= np.repeat(last, lengths)
    lengths = np.add.reduceat(kept, begins, dtype=np.int64)
    return order[kept], lengths[lengths > 0]
