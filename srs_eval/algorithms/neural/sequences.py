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

import numpy as np

from srs_eval.cards import rows_by_card
from srs_eval.nouns import IntArray, Reviews


@dataclass(frozen=True, slots=True)
class Histories:
    """What came before some reviews, card after card.

    Cards without a target are not here, and neither are reviews after a card's last target.
    """

    # The log, and the rows that were asked for
    reviews: Reviews
    rows: IntArray
    review: IntArray  # [n_entries]: Row number of each review read, card after card, in time order
    # [n_cards]: Where each card's entries begin, and how many they are (at least 1)
    begin: IntArray
    length: IntArray
    target: IntArray  # [n_targets]: Positions in the rows asked for, sorted by card and time
    # [n_targets]: How many of the card's entries come before each target (at least 1)
    steps: IntArray
    # [n_cards]: Where each card's targets begin, and how many they are (at least 1)
    target_begin: IntArray
    target_count: IntArray


@dataclass(frozen=True, slots=True)
class CardBatch:
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
    steps = steps[target]
    which, target_begin, target_count = np.unique(
        cards.number[rows[target]], return_index=True, return_counts=True
    )
    # Targets are in time order, so the last of a card has the longest history.
    length = steps[target_begin + target_count - 1]
    return Histories(
        reviews=reviews,
        rows=rows,
        review=cards.order[ranges(cards.begins[which], length)],
        begin=np.cumsum(length) - length,
        length=length,
        target=target,
        steps=steps,
        target_begin=target_begin,
        target_count=target_count,
    )


def batch_of(histories: Histories, cards: IntArray) -> CardBatch:
    """Lay `cards` side by side: positions in ``histories.length``."""
    n_cards = len(cards)
    length = histories.length[cards]
    review = np.full((length.max(initial=0), n_cards), -1)
    lane = np.repeat(np.arange(n_cards), length)
    step = ranges(np.zeros_like(length), length)
    review[step, lane] = histories.review[histories.begin[cards][lane] + step]
    count = histories.target_count[cards]
    which = ranges(histories.target_begin[cards], count)
    entry = (histories.steps[which] - 1) * n_cards + np.repeat(np.arange(n_cards), count)
    return CardBatch(review=review, target=histories.target[which], entry=entry)


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
