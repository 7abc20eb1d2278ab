"""Models that are forgetting curves, and the histories of cards that some look back at."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from srs_eval.data.cards import CardRows, rows_by_card
from srs_eval.data.reviews import FloatArray, IntArray, Reviews

# Pairs of reviews, or places in a table of cards, that are held in memory at once.
HELD = 1 << 20


@dataclass(frozen=True, slots=True)
class History:
    """A log card by card: the reviews of a card stand together, in time order."""

    reviews: Reviews  # The log in time order; its row numbers are what `rows` are everywhere
    cards: CardRows  # The rows of each card
    place: IntArray  # [n]: Where each row stands, card by card
    clock: FloatArray  # [n]: Days since the card's first review, by place

    def of_places(self, column: NDArray[np.generic]) -> FloatArray:
        """Return a column of the log, card by card."""
        return column[self.cards.order].astype(np.float64)

    def pairs(self, rows: IntArray, elapsed: FloatArray) -> Iterator[Pairs]:
        """Pair each row, `elapsed` days after the review before, with earlier ones of its card."""
        earlier, place = self.cards.nth[rows], self.place[rows]
        now = np.where(earlier > 0, self.clock[place - 1], 0.0) + elapsed
        ends = np.cumsum(earlier)
        begin = 0
        while begin < len(rows):
            before = ends[begin - 1] if begin else 0
            end = max(int(np.searchsorted(ends, before + HELD, side="right")), begin + 1)
            block = slice(begin, end)
            counts = earlier[block]
            starts = ends[block] - counts - before
            own = np.arange(counts.sum()) + np.repeat(place[block] - counts - starts, counts)
            yield Pairs(block, counts, starts, own, np.repeat(now[block], counts) - self.clock[own])
            begin = end


@dataclass(frozen=True, slots=True)
class Pairs:
    """Some predicted reviews, each with every earlier review of its card."""

    rows: slice  # Which of the predicted reviews these are
    # [rows]: How many earlier reviews each has, and where they begin below
    counts: IntArray
    starts: IntArray
    place: IntArray  # [pairs]: Where the earlier review stands, card by card
    age: FloatArray  # [pairs]: Days from the earlier review to the predicted one

    def sums(self, values: NDArray[np.generic]) -> FloatArray:
        """Sum over the earlier reviews of each row, 0 where there are none."""
        total = np.zeros(len(self.counts))
        occupied = self.counts > 0
        if occupied.any():
            total[occupied] = np.add.reduceat(values, self.starts[occupied], dtype=np.float64)
        return total


def history_of(reviews: Reviews) -> History:
    """Arrange a log card by card.

    The clock of each card is added up by itself, all second reviews of cards first, which a running
    sum over all cards would not do without rounding errors from one card to the next.
    """
    cards = rows_by_card(reviews.card)
    place = cards.begins[cards.number] + cards.nth
    clock = reviews.elapsed[cards.order].astype(np.float64)
    clock[cards.begins] = 0.0
    longest_first = np.argsort(-cards.lengths, kind="stable")
    begins, lengths = cards.begins[longest_first], cards.lengths[longest_first]
    for nth in range(1, cards.lengths.max(initial=0)):
        at = begins[: np.searchsorted(-lengths, -nth)] + nth
        clock[at] += clock[at - 1]
    return History(reviews, cards, place, clock)


class CurveOnly(ABC):
    """Base of models that predict a review by their forgetting curve at its elapsed time."""

    __slots__ = ()

    @abstractmethod
    def predict_at(self, reviews: Reviews, rows: IntArray, elapsed: FloatArray) -> FloatArray:
        """Predict recall at other elapsed times, [len(rows), k]; NaN where nothing is known."""

    def predict(self, reviews: Reviews, rows: IntArray) -> FloatArray:
        """Predict recall at each of `rows` from the card's reviews before it."""
        return self.predict_at(reviews, rows, reviews.elapsed[rows, None])[:, 0]
