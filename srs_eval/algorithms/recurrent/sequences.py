"""Card histories as padded batches: one pass of a network predicts every review of a card.

A recurrent network that has read reviews 1..k of a card holds all it needs to predict review
k + 1. Reading a card once therefore serves all its targets; a copy of the beginning of the
history for each of them (the usual layout) costs the square of the length instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from srs_eval.data.cards import CardRows, rows_by_card
from srs_eval.data.reviews import IntArray, Reviews

# More earlier reviews of its card has no review that is trained on.
MOST_EARLIER = 64


class CardBatch(NamedTuple):
    """A few cards side by side, the k-th review of each in step k."""

    # [n_steps, n_cards]: Row number of each review, -1 where a card is over: give a table of
    # features one more row, at its end, for the padding to point to
    review: IntArray
    target: IntArray  # [n_targets]: Positions in the rows to predict
    # [n_targets]: Which of the ``n_steps * n_cards`` entries (step by step) is the last review
    # before each target
    entry: IntArray


@dataclass(frozen=True, slots=True)
class Histories:
    """Reviews before some rows, card by card, up to the last of these rows on each card."""

    reviews: Reviews  # The log
    rows: IntArray  # The rows to predict
    cards: CardRows  # The rows of all cards of the log
    # [n_targets]: Positions in `rows`, how many earlier reviews each has, and which of the cards
    # below it is of
    target: IntArray
    steps: IntArray
    card: IntArray
    # [n_cards]: Number of each card in the log, how many of its reviews are read, and how many of
    # its reviews are targets
    number: IntArray
    length: IntArray
    targets: IntArray

    @property
    def review(self) -> IntArray:
        """Row number of each review that is read."""
        length = np.zeros(len(self.cards.begins), np.int64)
        length[self.number] = self.length
        return np.flatnonzero(self.cards.nth < length[self.cards.number])

    def dealt(self, targets: int, rng: np.random.Generator) -> Iterator[CardBatch]:
        """Batch whole cards at random, with about so many targets each."""
        order = rng.permutation(len(self.number))
        count = self.targets[order]
        n_batches = -(-len(self.target) // targets)
        return self._batches(order, (np.cumsum(count) - count) * n_batches // count.sum())

    def alike(self, entries: int) -> Iterator[CardBatch]:
        """Batch cards of like length, within a factor of 2, with about so many entries each."""
        order = np.argsort(self.length, kind="stable")
        length = self.length[order]
        octave = np.frexp(length)[1].astype(np.int64)
        share = (np.cumsum(length) - length) // entries
        return self._batches(order, octave * (share.max(initial=0) + 1) + share)

    def _batches(self, order: IntArray, group: IntArray) -> Iterator[CardBatch]:
        """Lay the cards of each group side by side; groups never decrease along `order`."""
        rank = np.argsort(order)
        by_card = np.lexsort((self.steps, rank[self.card]))
        cuts = np.flatnonzero(np.diff(group)) + 1
        targets = np.split(by_card, np.cumsum(self.targets[order])[cuts - 1])
        for cards, some in zip(np.split(order, cuts), targets, strict=True):
            if len(cards):
                length = self.length[cards]
                step = np.arange(length.max())[:, None]
                place = self.cards.begins[self.number[cards]] + np.minimum(step, length - 1)
                review = np.where(step < length, self.cards.order[place], -1)
                lane = rank[self.card[some]] - rank[cards[0]]
                yield CardBatch(
                    review, self.target[some], (self.steps[some] - 1) * len(cards) + lane
                )


def histories_before(reviews: Reviews, rows: IntArray, *, longest: int | None = None) -> Histories:
    """Gather the reviews before each of `rows`, in any order, on its card.

    Rows without an earlier review of their card are left out, and so are those with more of them
    than `longest`.
    """
    cards = rows_by_card(reviews.card)
    steps = cards.nth[rows]
    target = np.flatnonzero((steps > 0) & (steps <= (longest or len(reviews))))
    steps = steps[target]
    number, card, targets = np.unique(
        cards.number[rows[target]], return_inverse=True, return_counts=True
    )
    length = np.zeros(len(number), np.int64)
    np.maximum.at(length, card, steps)
    return Histories(reviews, rows, cards, target, steps, card, number, length, targets)
