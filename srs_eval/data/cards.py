"""Running counts and intervals along each card of a log in time order, and its next review."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np

from srs_eval.data.reviews import BoolArray, FloatArray, IntArray, Reviews

Clock = TypeVar("Clock", IntArray, FloatArray)

FIRST = -1  # In place of the interval before a card's first review


@dataclass(frozen=True, slots=True, eq=False)
class CardRows:
    """The rows of a log card by card: find them once, and count along the cards at will."""

    order: IntArray  # [n]: Row numbers, those of a card together and in time order
    # [cards]: Where each card begins in `order`, and how many rows it has
    begins: IntArray
    lengths: IntArray
    # [n]: Number of each row's card, and how many earlier rows that has
    number: IntArray
    nth: IntArray

    def earlier(self, event: BoolArray) -> IntArray:
        """Count, for each row, the events at earlier rows of the same card.

        >>> import numpy as np
        >>> rows_by_card(np.array([7, 7, 9, 7])).earlier(np.array([1, 0, 1, 1], bool)).tolist()
        [0, 1, 0, 1]
        """
        happened = event[self.order]
        counts = np.cumsum(happened, dtype=np.int64)
        counts -= happened
        counts -= np.repeat(counts[self.begins], self.lengths)
        return self._by_row(counts)

    def first(self) -> IntArray:
        """Row number of the first row of each row's card."""
        return self.order[self.begins][self.number]

    def previous(self) -> IntArray:
        """Row number of the card's row before each row, -1 where there is none."""
        return self.last(np.arange(1, 1 + len(self.order))) - 1

    def last(self, values: IntArray) -> IntArray:
        """Value of the card's row before each row, 0 where there is none.

        >>> import numpy as np
        >>> rows_by_card(np.array([7, 9, 7])).last(np.array([4, 3, 1])).tolist()
        [0, 0, 4]
        """
        before = np.zeros_like(values)
        before[1:] = values[self.order[:-1]]
        before[self.begins] = 0
        return self._by_row(before)

    def _by_row(self, values: IntArray) -> IntArray:
        """Return values that are ordered by card in the order of the log."""
        result = np.empty_like(values)
        result[self.order] = values
        return result


# Cards and rows of the log that was sorted last: the same cards are asked for again and again, to
# fit what was just predicted for instance, and every fold is a beginning of one log.
_recent: list[tuple[IntArray, CardRows]] = []


def rows_by_card(card: IntArray) -> CardRows:
    """Find the rows of each card; reviews are in time order. The arrays are read-only.

    >>> import numpy as np
    >>> rows_by_card(np.array([7, 9, 7])).order.tolist()
    [0, 2, 1]
    """
    whole = rows_of_whole_log(card)
    return whole if len(whole.order) == len(card) else _beginning(whole, len(card))


def rows_of_whole_log(card: IntArray) -> CardRows:
    """Find the rows of each card, as `rows_by_card`, of a log that begins with these cards.

    Of the whole log, where that was sorted before: then there are rows beyond the last of `card`.
    """
    for cards, rows in _recent:
        if np.array_equal(card, cards[: len(card)]):
            return rows
    rows = _along(card, stable_order(card))
    _recent[:] = [(card.copy(), rows)]
    return rows


@lru_cache(maxsize=1)
def _beginning(whole: CardRows, length: int) -> CardRows:
    """Return the rows of each card in the beginning of a log."""
    return _along(whole.number[:length], whole.order[whole.order < length])


def _along(card: IntArray, order: IntArray) -> CardRows:
    """Find where each card begins in the order of the rows."""
    grouped = card[order]
    is_first = np.ones(len(card), bool)
    np.not_equal(grouped[1:], grouped[:-1], out=is_first[1:])
    begins = np.flatnonzero(is_first)
    lengths = np.diff(begins, append=len(card))
    number, nth = np.empty_like(order), np.empty_like(order)
    number[order] = np.repeat(np.arange(len(begins)), lengths)
    nth[order] = np.arange(len(order)) - np.repeat(begins, lengths)
    rows = CardRows(order, begins, lengths, number, nth)
    for name in CardRows.__slots__:
        getattr(rows, name).flags.writeable = False
    return rows


def stable_order(numbers: IntArray) -> IntArray:
    """Sort row numbers by whole numbers, such as cards; equal ones stay in their order."""
    if len(numbers):
        lowest = numbers.min()
        # 16 bits are sorted several times as fast; the difference of Python's cannot overflow.
        if int(numbers.max()) - int(lowest) < 2**16:
            return np.argsort((numbers - lowest).astype(np.uint16), kind="stable")
    return np.argsort(numbers, kind="stable")


def since_previous(clock: Clock, card: IntArray) -> Clock:
    """Subtract from each clock reading, [n], the one at the card's previous review.

    The clock is the day number or the seconds of each review. The difference is -1 at the first
    review of each card.

    >>> import numpy as np
    >>> since_previous(np.array([0, 0, 3, 3]), np.array([7, 9, 7, 7])).tolist()
    [-1, -1, 3, 0]
    """
    previous = rows_by_card(card).previous()
    since = clock - clock[previous]
    since[previous < 0] = FIRST
    return since


def with_next_reviews(reviews: Reviews) -> tuple[Reviews, IntArray]:
    """Add one more review of each card after all others, which a model can be asked about.

    Returns the log and the rows of the reviews added.
    """
    count = len(reviews)
    _, last = np.unique(reviews.card[::-1], return_index=True)
    longer = reviews.take(np.r_[np.arange(count), np.sort(count - 1 - last)])
    rows = np.arange(count, len(longer))
    longer.day[rows] = reviews.day.max(initial=0)
    longer.rating[rows] = 3  # any will do
    longer.elapsed_days[rows] = longer.elapsed[rows] = 1
    longer.row[rows] = rows
    return longer, rows
