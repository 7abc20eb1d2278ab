"""Card histories as padded batches: one pass of a network predicts every review of a card.

A recurrent network that has read reviews 1..k of a card holds all it needs to predict review
k + 1. Reading a card once therefore serves all its targets; a copy of the beginning of the
history for each of them (the usual layout) costs the square of the length instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from srs_eval.data.cards import CardRows, rows_by_card
from srs_eval.data.reviews import IntArray, Reviews


@dataclass(frozen=True, slots=True)
class Histories:
    """Reviews before some rows, card by card, up to the last of these rows on each card."""

    reviews: Reviews
    rows: IntArray  # The rows to predict
    cards: CardRows  # The rows of all cards of the log
    target: IntArray  # [n_targets]: Positions in `rows`, sorted by card and time
    # [n_cards]: Number of each card in the log, how many of its reviews are read, where its targets
    # begin, and how many they are
    number: IntArray
    length: IntArray
    target_begin: IntArray
    target_count: IntArray

    @property
    def review(self) -> IntArray:
        """Row number of each review read, card after card."""
        return self.cards.order[ranges(self.cards.begins[self.number], self.length)]


class CardBatch(NamedTuple):
    """A few cards side by side, the k-th review of each in step k."""

    # [n_steps, n_cards]: Row number of each review, -1 where a card is over: give a table of
    # features one more row, at its end, for the padding to point to
    review: IntArray
    target: IntArray  # [n_targets]: Positions in the rows to predict
    # [n_targets]: Which of the ``n_steps * n_cards`` entries (step by step) is the last review
    # before each target
    entry: IntArray


def histories_before(reviews: Reviews, rows: IntArray, *, longest: int | None = None) -> Histories:
    """Gather the reviews before each of `rows`, in any order, on its card.

    Rows without an earlier review of their card are left out, and so are those with more of them
    than `longest`.
    """
    cards = rows_by_card(reviews.card)
    steps = cards.nth[rows]
    target = np.flatnonzero((steps > 0) & (steps <= (longest or len(reviews))))
    target = target[np.lexsort((steps[target], cards.number[rows[target]]))]
    number, begin, count = np.unique(
        cards.number[rows[target]], return_index=True, return_counts=True
    )
    # Targets are in time order, so the last of a card has the longest history.
    length = steps[target[begin + count - 1]]
    return Histories(reviews, rows, cards, target, number, length, begin, count)


def batch_of(histories: Histories, cards: IntArray) -> CardBatch:
    """Lay `cards` side by side: positions in ``histories.length``."""
    length = histories.length[cards]
    step = np.arange(length.max(initial=0))[:, None]
    is_over = step >= length
    place = histories.cards.begins[histories.number[cards]] + np.where(is_over, 0, step)
    review = np.where(is_over, -1, histories.cards.order[place])
    count = histories.target_count[cards]
    target = histories.target[ranges(histories.target_begin[cards], count)]
    last = histories.cards.nth[histories.rows[target]] - 1
    return CardBatch(review, target, last * len(cards) + np.repeat(np.arange(len(cards)), count))


def groups_of_targets(histories: Histories, order: IntArray, *, per_group: int) -> list[IntArray]:
    """Cut cards, taken in `order`, into groups of about `per_group` targets; cards stay whole."""
    count = histories.target_count[order]
    n_groups = -(-len(histories.target) // per_group)
    return _cut(order, (np.cumsum(count) - count) * n_groups // max(len(histories.target), 1))


def groups_of_entries(histories: Histories, *, per_group: int) -> list[IntArray]:
    """Group cards so that a padded batch holds at most about `per_group` entries.

    Lengths within a group differ by less than a factor of 2, so one very long card does not
    make a group of short ones long.
    """
    order = np.argsort(histories.length, kind="stable")
    length = histories.length[order]
    octave = np.frexp(length)[1].astype(np.int64)
    share = (np.cumsum(length) - length) // per_group
    return _cut(order, octave * (share.max(initial=0) + 1) + share)


def ranges(begin: IntArray, length: IntArray) -> IntArray:
    """Concatenate the ranges ``begin[i] .. begin[i] + length[i] - 1``.

    >>> import numpy as np
    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    within = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
    numbers: IntArray = within + np.repeat(begin, length)
    return numbers


def _cut(order: IntArray, group: IntArray) -> list[IntArray]:
    """Cut `order` wherever its group number, which never decreases, changes."""
    return np.split(order, np.flatnonzero(np.diff(group)) + 1) if len(order) else []
