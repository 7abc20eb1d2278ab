"""What half-life models without a state share: counts of a card's answers, and their bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from srs_eval.algorithms.curve_only import CurveOnly
from srs_eval.cards import rows_by_card
from srs_eval.nouns import FloatArray, IntArray, Reviews, Vector

# Base-2 logarithms of half-lives in days, from counts of right and wrong answers.
LogHalfLife = Callable[[Vector, Vector], Vector]

# As in the public code: 15 minutes and 9 months.
SHORTEST, LONGEST = 15 / (24 * 60), 274.0
LEAST, MOST = 0.0001, 0.9999
# Powers of 2 beyond these are outside the bounds by far; they could overflow.
_FARTHEST = 64.0


def counts_before(reviews: Reviews, rows: IntArray) -> tuple[Vector, Vector]:
    """Count the right and wrong answers of each card before each of `rows`."""
    cards = rows_by_card(reviews.card)
    right = cards.earlier(reviews.recalled)[rows]
    return right.astype(np.float64), (cards.nth[rows] - right).astype(np.float64)


def half_life(log_half_life: Vector) -> Vector:
    """Raise 2 to a power, within 15 minutes and 274 days."""
    days = np.exp2(np.clip(log_half_life, -_FARTHEST, _FARTHEST))
    return np.clip(days, SHORTEST, LONGEST)


def recall(elapsed: FloatArray, days: Vector) -> Vector:
    """Probability of recall `elapsed` days after a review, within 0.0001 and 0.9999."""
    return np.clip(np.exp2(-elapsed / days), LEAST, MOST)


@dataclass(frozen=True, slots=True)
class HalfLifeModel(CurveOnly):
    """Exponential forgetting with a half-life computed from counts of answers."""

    log_half_life: LogHalfLife
    parameters: tuple[float, ...] = ()  # What was learned for it, empty if nothing was

    def predict_at(self, reviews: Reviews, rows: IntArray, elapsed: FloatArray) -> Vector:
        days = half_life(self.log_half_life(*counts_before(reviews, rows)))
        return recall(np.asarray(elapsed, np.float64), days[:, None])
