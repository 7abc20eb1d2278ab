"""A log with the residuals of a base model, as features of sessions read it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from srs_eval.data.cards import CardRows, rows_by_card, stable_order
from srs_eval.data.reviews import BoolArray, FloatArray, IntArray, Reviews

# Answer times are cut off here, as collections do themselves at about a minute.
_LONGEST_MS, _USUAL_MS = 120_000.0, 8_000.0
# Sums are share for that many groups at most, although most of these may be empty.
_MOST_GROUPS = 1 << 16
# Cards at most so many places apart are neighbours; places and days after which one counts less.
_PLACES, _FADING_PLACES, FADING_DAYS = 15, 5.0, 3.0


# Each step needs the one before, within groups of any order: no numpy function can do that.
@numba.njit()
def _faded(group: IntArray, value: FloatArray, share: float) -> FloatArray:
    before = np.empty(len(group))
    sums = np.zeros(group.max() + 1 if len(group) else 0)
    for row in range(len(group)):
        before[row] = sums[group[row]]
        sums[group[row]] = share * before[row] + value[row]
    return before


@numba.njit()
def _surrounded(
    card: IntArray, day: IntArray, learned: BoolArray, residual: FloatArray, information: FloatArray
) -> tuple[FloatArray, FloatArray]:
    cards = card.max() + 1 if len(card) else 0
    last_day = np.full(cards, -1)
    last = np.zeros((cards, 2))
    sums = np.zeros((2, len(card)))
    by_place = np.exp(-np.arange(_PLACES + 1) / _FADING_PLACES)
    by_age = 0.5 ** (np.arange(day[-1] + 1 if len(day) else 0) / FADING_DAYS)
    for row in range(len(card)):
        if not learned[row]:
            continue
        own = card[row]
        for other in range(max(0, own - _PLACES), min(cards, own + _PLACES + 1)):
            if other != own and last_day[other] >= 0:
                share = by_place[abs(other - own)] * by_age[day[row] - last_day[other]]
                sums[0, row] += share * last[other, 0]
                sums[1, row] += share * last[other, 1]
        last_day[own] = day[row]
        last[own, 0], last[own, 1] = residual[row], information[row]
    return sums[0], sums[1]


@dataclass(frozen=True)
class Answers:
    """A log with the log-odds of a base model, and sums over the answers before each review.

    A later-day review is one on a later day than the review before of its card. Cards and days
    are numbered in the order of their first review, so that no number depends on what follows.
    """

    reviews: Reviews  # The log in time order
    z: FloatArray  # [n]: Log-odds of recall, as the base model predicts them; 0 where it cannot

    def __len__(self) -> int:
        """Count the reviews."""
        return len(self.reviews)

    @cached_property
    def predicted(self) -> BoolArray:
        """Whether the base model can predict each review."""
        mask: BoolArray = (self.reviews.elapsed > 0) & (self.previous >= 0)
        return mask

    @cached_property
    def later(self) -> BoolArray:
        """Whether each review is a later-day review."""
        mask: BoolArray = self.predicted & (self.reviews.elapsed_days > 0)
        return mask

    @cached_property
    def information(self) -> FloatArray:
        """Variance p (1 - p) of each outcome, 0 where nothing is predicted."""
        p = expit(self.z)
        return np.where(self.predicted, p * (1 - p), 0.0)

    @cached_property
    def residual(self) -> FloatArray:
        """Outcome less predicted probability, 0 where nothing is predicted."""
        return np.where(self.predicted, self.reviews.recalled - expit(self.z), 0.0)

    @cached_property
    def cards(self) -> CardRows:
        """The rows of each card."""
        return rows_by_card(self.reviews.card)

    @cached_property
    def previous(self) -> IntArray:
        """Row of the card's review before each, -1 where there is none."""
        return self.cards.previous()

    @cached_property
    def card(self) -> IntArray:
        """Number of each review's card, in order of first appearance."""
        first = self.cards.first()
        return (np.cumsum(self.previous < 0) - 1)[first]

    @cached_property
    def day(self) -> IntArray:
        """Days since the first day of the log."""
        return self.reviews.day - self.reviews.day[:1]

    @cached_property
    def deck(self) -> IntArray:
        """Number of each review's deck; without decks the collection is one."""
        if self.reviews.deck is None:
            return np.zeros(len(self), np.int64)
        return np.unique(self.reviews.deck, return_inverse=True)[1].astype(np.int64)

    @cached_property
    def sibling(self) -> IntArray:
        """Row of the latest earlier review of another card of the note, -1 where there is none.

        A card whose note is not known has no siblings.
        """
        if self.reviews.note is None or not len(self):
            return np.full(len(self), -1)
        note = np.unique(self.reviews.note, return_inverse=True)[1]
        note = np.where(self.reviews.note == -1, len(self) + self.card, note)
        order = stable_order(note)
        begins = np.diff(note[order], prepend=-1) != 0
        turns = begins | (np.diff(self.card[order], prepend=-1) != 0)
        before = np.where(begins, -1, np.roll(order, 1))
        latest = np.empty(len(self), np.int64)
        latest[order] = before[np.maximum.accumulate(np.where(turns, np.arange(len(self)), 0))]
        return latest

    @cached_property
    def last_day(self) -> IntArray:
        """Day of the card's review before each, -1 where there is none."""
        return np.where(self.previous < 0, -1, self.day[self.previous])

    @property
    def interval(self) -> IntArray:
        """Days since the card's review before each."""
        return self.reviews.elapsed_days

    @property
    def days(self) -> FloatArray:
        """Days since the card's review before each, 0 where there is none."""
        return np.maximum(self.reviews.elapsed_days, 0).astype(np.float64)

    @cached_property
    def log_seconds(self) -> FloatArray:
        """Logarithm of each answer time in seconds, to which 0.3 is added."""
        if self.reviews.duration_ms is None:
            time = np.full(len(self), _USUAL_MS)
        else:
            time = np.nan_to_num(self.reviews.duration_ms, nan=_USUAL_MS)
        seconds = np.clip(time.astype(np.float64), 0.0, _LONGEST_MS) / 1000
        return np.asarray(np.log(seconds + 0.3))

    def of_previous(self, values: NDArray[np.generic]) -> FloatArray:
        """Return each value of the card's review before, 0 where there is none."""
        return np.where(self.previous < 0, 0.0, values[self.previous].astype(np.float64))

    def grouped(self, *columns: IntArray) -> IntArray:
        """Return numbers of the groups of reviews that are alike in all columns."""
        group = np.zeros(len(self), np.int64)
        for column in columns:
            group = group * (column.max(initial=0) + 2) + column + 1
            if group.max(initial=0) > _MOST_GROUPS:
                group = np.unique(group, return_inverse=True)[1].astype(np.int64)
        return group

    def faded(
        self,
        values: NDArray[np.generic],
        group: IntArray,
        share: float = 1.0,
        counted: BoolArray | None = None,
    ) -> FloatArray:
        """Sum the values before each review, of which each later one of the group keeps a share.

        `group` has the numbers from `grouped`. A share `share` of 1 gives the sum, 0 the latest
        value. Only the reviews in `counted` take part; at the others the result is 0.
        """
        if counted is None:
            return _faded(group, values.astype(np.float64), share)
        sums = np.zeros(len(self))
        sums[counted] = _faded(group[counted], values[counted].astype(np.float64), share)
        return sums

    def bias(
        self, half_life: float, group: IntArray, prior: float, counted: BoolArray
    ) -> FloatArray:
        """Return one step of Newton's method towards the bias of the base model in recent answers.

        `half_life` is the number of counted answers of the group after which an answer counts half;
        it may be infinite. `prior` is the strength of the pull towards no bias. `group` and
        `counted`, which answers count, are [n].
        """
        share = 0.5 ** (1 / half_life)
        total = self.faded(self.residual, group, share, counted)
        return total / (self.faded(self.information, group, share, counted) + prior)

    def bias_of_neighbours(self, prior: float) -> FloatArray:
        """Return such a step for cards that were introduced just before or after each card."""
        total, information = _surrounded(
            self.card, self.day, self.later, self.residual, self.information
        )
        return total / (information + prior)
