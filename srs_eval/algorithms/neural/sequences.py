"""Card histories as padded batches: one pass of a network predicts every review of a card.

A recurrent network that has read reviews 1..k of a card holds all it needs to predict review
k + 1. Reading a card once therefore serves all its targets; a copy of the beginning of the
history for each of them (the usual layout) costs the square of the length instead.

Nothing here knows a network: histories are row numbers, to be looked up in any table of
features, and what is predicted is named by the entry of the batch after which to read the
network's output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from srs_eval.data.cards import CardRows, rows_by_card
from srs_eval.data.reviews import IntArray, Reviews


@dataclass(frozen=True, slots=True)
class Histories:
    """What came before some reviews, card after card.

    Cards without a target are not here, and neither are reviews after a card's last target.
    """

    # The log, and the rows that were asked for
    reviews: Reviews
    rows: IntArray
    cards: CardRows  # The rows of all cards of the log
    target: IntArray  # [n_targets]: Positions in the rows asked for, sorted by card and time
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
    target: IntArray  # [n_targets]: Positions in the rows asked for
    # [n_targets]: Which of the ``n_steps * n_cards`` entries (step by step) is the last review
    # before each target
    entry: IntArray


def histories_before(reviews: Reviews, rows: IntArray, *, longest: int | None = None) -> Histories:
    """Find what came before each of `rows`, in any order, on its card.

    Rows without an earlier review of their card are left out, and so are those with more of them
    than `longest`.
    """
    cards = rows_by_card(reviews.card)
    steps = cards.nth[rows]
    wanted = steps > 0 if longest is None else (steps > 0) & (steps <= longest)
    target = np.flatnonzero(wanted)
    target = target[np.lexsort((steps[target], cards.number[rows[target]]))]
    number, begin, count = np.unique(
        cards.number[rows[target]], return_index=True, return_counts=True
    )
    # Targets are in time order, so the last of a card has the longest history.
    length = steps[target[begin + count - 1]]
    return Histories(reviews, rows, cards, target, number, length, begin, count)


def side_by_side(cards: CardRows, number: IntArray, length: IntArray) -> IntArray:
    """Lay the first rows of some cards side by side, [longest, cards], -1 where one is over."""
    step = np.arange(length.max(initial=0))[:, None]
    is_over = step >= length
    place = cards.begins[number] + np.where(is_over, 0, step)
    return np.where(is_over, -1, cards.order[place])


def batch_of(histories: Histories, cards: IntArray) -> CardBatch:
    """Lay `cards` side by side: positions in ``histories.length``."""
    review = side_by_side(histories.cards, histories.number[cards], histories.length[cards])
    count = histories.target_count[cards]
    target = histories.target[ranges(histories.target_begin[cards], count)]
    last = histories.cards.nth[histories.rows[target]] - 1
    return CardBatch(review, target, last * len(cards) + np.repeat(np.arange(len(cards)), count))


def groups_of_targets(histories: Histories, order: IntArray, *, per_group: int) -> list[IntArray]:
    """Group cards, taken in `order`, so that each group has about `per_group` targets.

    There are as many groups as batches of `per_group` targets would be needed, of about equal
    numbers of targets; cards stay whole, so a group can be some targets larger. `order` is a
    permutation of positions in ``histories.length``. No group is empty, and there is none if there
    are no targets.
    """
    count = histories.target_count[order]
    n_groups = -(-len(histories.target) // per_group)
    group = (np.cumsum(count) - count) * n_groups // max(len(histories.target), 1)
    return _cut(order, group)


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
    if not len(order):
        return []
    return np.split(order, np.flatnonzero(np.diff(group)) + 1)
