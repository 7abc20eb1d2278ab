"""What the simulated app believes about a card, and when it asks for it next.

The app knows the ratings and whole-day intervals of a card, how easily cards of its kind are
learned, as an app does whose settings differ from deck to deck, and nothing of the person. It
estimates stability and difficulty by the rules of FSRS-4.5, its numbers scattered around those of
other users. Intervals have Anki's fuzz. The same people may study with another scheduler instead,
`data.scheduler`, which knows nothing of kinds.

References
----------
Ye, J. (2024), *The Algorithm*, FSRS-4.5, open-spaced-repetition.
Elmes, D. (2023), *What spaced repetition algorithm does Anki use?*, SM-2 as Anki has changed it,
https://faqs.ankiweb.net/what-spaced-repetition-algorithm.html.
"""

from __future__ import annotations

import numpy as np

from srs_eval.data.reviews import FloatArray, IntArray

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
_AGAIN, _GOOD = 1, 3
# Of SM-2, by rating: days after the first, what is added to the ease, the share of the time passed
# late that counts, and the factor of the ease.
_SM2_FIRST = np.array([np.nan, 1.0, 1.0, 1.0, 4.0])
_EASE_STEP = np.array([np.nan, -0.2, -0.15, 0.0, 0.15])
_LATE_SHARE = np.array([np.nan, 0.0, 0.0, 0.5, 1.0])
_BONUS = np.array([np.nan, np.nan, np.nan, 1.0, 1.3])
OWN = "own"
SCHEDULERS = "^(own|sm2|fixed|fsrs_[5-9][0-9])$"

Beliefs = tuple[FloatArray, FloatArray]  # Stability in days, and difficulty from 1 to 10; [n]


class App:
    """How one person's app is set: a desired retention, and numbers around the published ones.

    A desired retention that is given replaces what was drawn, so that all other draws of the person
    stay as they are.
    """

    def __init__(self, rng: np.random.Generator, desired_retention: float | None = None) -> None:
        scatter = np.exp(0.3 * rng.standard_normal(3))
        own = float(np.clip(rng.normal(0.89, 0.04), 0.75, 0.97))
        # Recall at which it asks for a card
        self.desired_retention = own if desired_retention is None else desired_retention
        # [4]: Days it believes recall takes to fall to 0.9, after a first Again, Hard, Good, Easy
        self.first_stability = _FIRST * scatter[0]
        # How much it believes a recall adds to stability, and forgetting leaves of it
        self.growth = float(_GROWTH * scatter[1])
        self.relapse = float(_RELAPSE * scatter[2])

    def first(self, rating: IntArray) -> Beliefs:
        """Believe in a stability in days and a difficulty, 1 to 10, after the first rating."""
        difficulty = _DIFFICULTY - _DIFFICULTY_SLOPE * (rating - _GOOD)
        return self.first_stability[rating - 1], bounded(difficulty, 1, 10)

    def later(
        self, believed: Beliefs, days: IntArray, rating: IntArray, kind: FloatArray | float = 1.0
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
        stability = np.where(rating > _AGAIN, recalled, np.minimum(base, stability))
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


class Sm2(App):
    """Asks after intervals of SM-2 as Anki computes them: the interval and the ease of a card.

    These two are what it "believes"; at a desired retention of 0.9 a stability is an interval.
    """

    def first(self, rating: IntArray) -> Beliefs:
        """Give the interval and the ease after the first rating."""
        return _SM2_FIRST[rating], np.full(len(rating), 2.5)

    def later(
        self, believed: Beliefs, days: IntArray, rating: IntArray, kind: FloatArray | float = 1.0
    ) -> Beliefs:
        """Multiply the interval by the ease, or start again from a day, and move the ease."""
        stability, difficulty = believed
        late = np.maximum(days - stability, 0) * _LATE_SHARE[rating]
        factor = _BONUS[rating] * difficulty
        grown = np.where(rating < _GOOD, stability * 1.2, (stability + late) * factor)
        interval = np.where(rating == _AGAIN, 1.0, np.maximum(grown, stability + 1))
        ease = np.maximum(difficulty + _EASE_STEP[rating], 1.3)
        return np.minimum(interval, _MOST_STABILITY), ease


class Fixed(App):
    """Asks after 1, 2, 4, ... 64, 64, ... days, whatever the ratings."""

    def first(self, rating: IntArray) -> Beliefs:
        """Give a day, and no difficulty."""
        return np.ones(len(rating)), np.zeros(len(rating))

    def later(
        self, believed: Beliefs, days: IntArray, rating: IntArray, kind: FloatArray | float = 1.0
    ) -> Beliefs:
        """Double the interval."""
        return np.minimum(2 * believed[0], 64.0), believed[1]


def draw_app(rng: np.random.Generator, scheduler: str = OWN) -> App:
    """Draw how an app is set that schedules as `data.scheduler` says."""
    kind, _, percent = scheduler.partition("_")
    app = {OWN: App, "fsrs": App, "sm2": Sm2, "fixed": Fixed}[kind]
    return app(rng, None if kind == OWN else int(percent or 90) / 100)


def bounded(values: FloatArray, least: float, most: float) -> FloatArray:
    """Keep values between bounds; `numpy.clip` takes longer for few values."""
    return np.minimum(np.maximum(values, least), most)
