"""What the simulated app believes about a card, and when it asks for it next.

The app knows the ratings and whole-day intervals of a card, and nothing of the person. It
estimates stability and difficulty by the rules of FSRS-4.5, its numbers scattered around the
published defaults as if they had been fitted to another user.

References
----------
Ye, J. (2024), *The Algorithm*, FSRS-4.5, open-spaced-repetition.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from srs_eval.data.simulated.memory import bounded
from srs_eval.nouns import FloatArray, IntArray

_FIRST = np.array([0.4872, 1.4003, 3.7145, 13.8206])
_DIFFICULTY, _DIFFICULTY_SLOPE, _REVERSION = 5.1618, 1.2298, 0.031
_LOG_GROWTH, _SATURATION, _SPACING = 1.6474, 0.1367, 1.0461
_RELAPSE, _RELAPSE_DIFFICULTY, _RELAPSE_POWER, _RELAPSE_SPACING = 2.1072, 0.0793, 0.3246, 1.587
_SHARE = np.array([np.nan, 1.0, 0.2272, 1.0, 2.8755])  # Of the usual growth, by rating
_DIFFICULTY_STEP = 0.8975 * (np.arange(5) - 3)  # By rating
_CURVE = 19 / 81
_LEAST_STABILITY, _MOST_STABILITY = 0.01, 36500.0
_LONGEST_INTERVAL = 3650
_AGAIN, _GOOD = 1, 3


@dataclass(frozen=True, slots=True)
class App:
    """How one person's app is set."""

    desired_retention: float  # Recall at which it asks for a card
    # [4]: Days it believes recall takes to fall to 0.9, after a first Again, Hard, Good, Easy
    first_stability: FloatArray
    # How much it believes a recall adds to stability, and forgetting leaves of it
    growth: float
    relapse: float

    def first(self, rating: IntArray) -> tuple[FloatArray, FloatArray]:
        """Believe in a stability in days and a difficulty, 1 to 10, after the first rating."""
        difficulty = _DIFFICULTY - _DIFFICULTY_SLOPE * (rating - _GOOD)
        return self.first_stability[rating - 1], bounded(difficulty, 1, 10)

    def later(
        self,
        stability: FloatArray,
        difficulty: FloatArray,
        elapsed_days: IntArray,
        rating: IntArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Believe in a stability and difficulty after a review on a later day."""
        forgotten = 1 - (1 + _CURVE * elapsed_days / stability) ** -0.5
        gain = self.growth * (11 - difficulty) * stability**-_SATURATION
        recalled = stability * (1 + gain * np.expm1(_SPACING * forgotten) * _SHARE[rating])
        left = self.relapse * difficulty**-_RELAPSE_DIFFICULTY
        left *= ((stability + 1) ** _RELAPSE_POWER - 1) * np.exp(_RELAPSE_SPACING * forgotten)
        believed = np.where(rating > _AGAIN, recalled, np.minimum(left, stability))
        moved = difficulty - _DIFFICULTY_STEP[rating]
        moved = _REVERSION * _DIFFICULTY + (1 - _REVERSION) * moved
        return bounded(believed, _LEAST_STABILITY, _MOST_STABILITY), bounded(moved, 1, 10)

    def interval(self, stability: FloatArray, fuzz: FloatArray) -> IntArray:
        """Whole days, from 1 to ten years, until recall should fall to the desired retention.

        `fuzz`, in [0, 1), is where in the 10 % around it the interval falls; intervals up to 2 days
        stay.
        """
        interval = stability * (self.desired_retention**-2 - 1) / _CURVE
        spread = np.where(interval > 2.5, interval * (0.95 + 0.1 * fuzz), interval)
        return bounded(spread.round(), 1, _LONGEST_INTERVAL).astype(np.int64)


def draw_app(rng: np.random.Generator) -> App:
    """Draw how an app is set: a desired retention, and numbers around the published ones."""
    scatter = np.exp(0.3 * rng.standard_normal(3))
    return App(
        desired_retention=float(np.clip(rng.normal(0.89, 0.04), 0.75, 0.97)),
        first_stability=_FIRST * scatter[0],
        growth=float(np.exp(_LOG_GROWTH) * scatter[1]),
        relapse=float(_RELAPSE * scatter[2]),
    )
