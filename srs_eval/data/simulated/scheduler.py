"""What the simulated app believes about a card, and when it asks for it next.

The app knows the ratings and whole-day intervals of a card, how easily cards of its kind are
learned, as an app does whose settings differ from deck to deck, and nothing of the person. It
estimates stability and difficulty by the rules of FSRS-4.5, its numbers scattered around those of
other users. Intervals have Anki's fuzz.

References
----------
Ye, J. (2024), *The Algorithm*, FSRS-4.5, open-spaced-repetition.
"""

from __future__ import annotations

import numpy as np

from srs_eval.data.reviews import FloatArray, IntArray

AGAIN, HARD, GOOD, EASY = 1, 2, 3, 4
_FIRST = np.array([0.4872, 1.4003, 3.7145, 13.8206])
_DIFFICULTY, _DIFFICULTY_SLOPE, _REVERSION = 5.1618, 1.2298, 0.031
# Growth is a third of the published one, which is for cards that are learned more easily.
_GROWTH, _SATURATION, _SPACING = 0.35 * np.exp(1.6474), 0.1367, 1.0461
_RELAPSE, _RELAPSE_DIFFICULTY, _RELAPSE_POWER, _RELAPSE_SPACING = 2.1072, 0.0793, 0.3246, 1.587
_SHARE = np.array([np.nan, 1.0, 0.2272, 1.0, 2.8755])  # Of the usual growth, by rating
_DIFFICULTY_STEP = 0.8975 * (np.arange(5) - 3)  # By rating
_CURVE = 19 / 81
_LEAST_STABILITY, _MOST_STABILITY = 0.01, 36500.0
_LONGEST_INTERVAL = 3650
# From so many days on, up to so many, fuzz grows by this share of what is above.
_FUZZ = np.array([[2.5, 7.0, 0.15], [7.0, 20.0, 0.10], [20.0, np.inf, 0.05]], np.float32)

Beliefs = tuple[FloatArray, FloatArray]  # Stability in days, and difficulty from 1 to 10; [n]


class App:
    """How one person's app is set: a desired retention, and numbers around the published ones."""

    def __init__(self, rng: np.random.Generator) -> None:
        scatter = np.exp(0.3 * rng.standard_normal(3))
        # Recall at which it asks for a card
        self.desired_retention = float(np.clip(rng.normal(0.89, 0.04), 0.75, 0.97))
        # [4]: Days it believes recall takes to fall to 0.9, after a first Again, Hard, Good, Easy
        self.first_stability = _FIRST * scatter[0]
        # How much it believes a recall adds to stability, and forgetting leaves of it
        self.growth = float(_GROWTH * scatter[1])
        self.relapse = float(_RELAPSE * scatter[2])

    def first(self, rating: IntArray) -> Beliefs:
        """Believe in a stability and a difficulty after the first rating."""
        difficulty = _DIFFICULTY - _DIFFICULTY_SLOPE * (rating - GOOD)
        return self.first_stability[rating - 1], bounded(difficulty, 1, 10)

    def later(
        self, believed: Beliefs, days: IntArray, rating: IntArray, kind: FloatArray
    ) -> Beliefs:
        """Believe in a stability and difficulty after a review so many days later.

        `kind` is the factor by which stabilities of this kind are known to gain more than usual.
        """
        stability, difficulty = believed
        forgotten = 1 - (1 + _CURVE * days / stability) ** -0.5
        gain = kind * self.growth * (11 - difficulty) * stability**-_SATURATION
        recalled = stability * (1 + gain * np.expm1(_SPACING * forgotten) * _SHARE[rating])
        base = self.relapse * difficulty**-_RELAPSE_DIFFICULTY
        base *= ((stability + 1) ** _RELAPSE_POWER - 1) * np.exp(_RELAPSE_SPACING * forgotten)
        stability = np.where(rating > AGAIN, recalled, np.minimum(base, stability))
        moved = difficulty - _DIFFICULTY_STEP[rating]
        moved = _REVERSION * _DIFFICULTY + (1 - _REVERSION) * moved
        return bounded(stability, _LEAST_STABILITY, _MOST_STABILITY), bounded(moved, 1, 10)

    def interval(self, stability: FloatArray, lot: FloatArray) -> IntArray:
        """Whole days, from 1 to ten years, until recall should fall to the desired retention.

        They are drawn around it as Anki does, in single precision. `lot`, in [0, 1), is where in
        the range that fuzz allows the interval falls.
        """
        interval = stability * (self.desired_retention**-2 - 1) / _CURVE
        days = bounded(interval.astype(np.float32), 1, _LONGEST_INTERVAL)
        starts, ends, shares = _FUZZ.T[:, :, np.newaxis]
        first, second, third = shares * np.maximum(np.minimum(days, ends) - starts, 0)
        around = np.where(days < starts[0], 0, 1 + first + second + third)
        low = np.floor(days - around + 0.5)
        high = np.minimum(np.floor(days + around + 0.5), _LONGEST_INTERVAL)
        drawn = np.floor(low + lot.astype(np.float32) * (1 + high - low))
        intervals: IntArray = np.minimum(drawn, high).astype(np.int64)
        return intervals


def bounded(values: FloatArray, least: float, most: float) -> FloatArray:
    """Keep values between bounds; `numpy.clip` takes longer for few values."""
    return np.minimum(np.maximum(values, least), most)
