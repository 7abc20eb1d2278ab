"""Who the simulated users are: how much they study, how they remember, and what their app believes.

Medians and spreads were moved until logs had the statistics of real ones: `docs/synthetic.md`.

References
----------
Ye, J. (2024), *The Algorithm*, FSRS-4.5, open-spaced-repetition.
"""

from __future__ import annotations

import math

import numpy as np

from srs_eval.data.reviews import FloatArray, IntArray

# Scored reviews per user of the public srs-benchmark: minimum assumed, the nine published
# percentiles, and the published maximum.
_SIZE_SHARES = (0.0, 0.01, 0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99, 1.0)
_SIZES = (300, 785, 1635, 2350, 4780, 12500, 35995, 89750, 147010, 300220, 1939325)

# Five sixths of the reviews that can be scored are; the others only train.
_SCORED_SHARE = 5 / 6
# The outlier rule of the benchmark takes about this share of the simulated reviews away.
_KEPT_SHARE = 0.92

AGAIN, HARD, GOOD, EASY = 1, 2, 3, 4
# Of FSRS-4.5: growth is a third of the published one, which is for cards that are learned more
# easily.
_FIRST = np.array([0.4872, 1.4003, 3.7145, 13.8206])
_DIFFICULTY, _DIFFICULTY_SLOPE, _REVERSION = 5.1618, 1.2298, 0.031
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


class Memory:
    """How one person really remembers, which no model is shown; the same for all of their cards.

    Stability grows and shrinks much as in FSRS-6, so that models of that family have something to
    learn. The rest departs from it on purpose: `docs/synthetic.md` lists what and why.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        level = np.exp(0.3 * rng.standard_normal())
        first = np.array([0.35, 1.3, 2.6, 9.0]) * level * np.exp(0.3 * rng.standard_normal(4))
        # [4]: Days until recall falls to 0.9, after a first Again, Hard, Good, Easy
        self.first_stability = np.sort(first)
        # How much a recall lengthens stability, how that falls off as stability grows, and how it
        # gains from waiting
        self.growth = np.e * np.exp(0.3 * rng.standard_normal())
        self.saturation = np.clip(rng.normal(0.19, 0.06), 0.05, 0.4)
        self.spacing = np.clip(rng.normal(0.6, 0.15), 0.3, 2.0)
        # [5]: Share of the usual growth, by rating: Hard below 1, Easy above
        self.share = np.array([np.nan, 1.0, rng.uniform(0.4, 0.9), 1.0, rng.uniform(1.2, 2.2)])
        # Size of stability after forgetting, its power of the stability lost, and its gain from
        # waiting
        self.relapse = 8.0 * level * np.exp(0.3 * rng.standard_normal())
        self.relapse_power = np.clip(rng.normal(0.26, 0.06), 0.1, 0.5)
        self.relapse_spacing = np.clip(rng.normal(1.4, 0.4), 0.3, 2.5)
        # Exponent of the stretched-exponential forgetting curve, at most 1
        self.shape = rng.uniform(0.8, 1.0)
        # Chance to answer without remembering, and to fail although remembering
        self.guess = rng.uniform(0.001, 0.005)
        self.slip = 0.003 * np.exp(0.8 * rng.standard_normal())
        # Log-odds of recall ten minutes after an answer, for a stability of three days
        self.step_level = rng.normal(2.7, 0.8)


class App:
    """What schedules one person's cards: FSRS-4.5, its numbers scattered around the published ones.

    The app knows the ratings and whole-day intervals of a card, how easily cards of its kind are
    learned, as an app does whose settings differ from deck to deck, and nothing of the person.
    """

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


class Learner:
    """A person who makes `later_reviews` reviews on a later day than the card's review before.

    A `size_scale` of 0.1 is for a tenth of the published sizes. Longer logs take longer lives, with
    much room around that.
    """

    def __init__(
        self, rng: np.random.Generator, size_scale: float, max_reviews: int | None
    ) -> None:
        scored = size_scale * math.exp(np.interp(rng.random(), _SIZE_SHARES, np.log(_SIZES)))
        # A log of `max_reviews` rows has up to 0.75 times as many such reviews.
        most = np.inf if max_reviews is None else math.ceil(0.75 * max_reviews)
        self.later_reviews = int(min(max(600, round(scored / _SCORED_SHARE / _KEPT_SHARE)), most))
        days = _scattered(480 * (self.later_reviews / 15000) ** 0.35, 0.5, rng)
        # Days between the first and the last chance to study
        self.life_days = int(np.clip(days, 45, 4000))
        passes_only = rng.random() < 0.2
        goes_on = np.clip(rng.beta(5, 2.2), 0.3, 0.98)
        self.app = App(rng)  # What schedules their cards
        self.memory = Memory(rng)
        # What is added to their log-odds of recall, always. Who fails much more than the app
        # promises gives up before they have a long log.
        self.level = max(0.7, rng.normal(1.3, 0.9))
        # Spread of the log-odds of recall over weeks, from day to day, and within a session
        self.slow_ability = _scattered(0.35, 0.4, rng)
        self.daily_ability = _scattered(0.2, 0.8, rng)
        self.session_ability = min(_scattered(0.9, 0.8, rng), 2.0)
        self.trend = rng.normal(0, 0.5)  # Change of log-odds of recall over the whole life
        # Spread of cards: of log stability at first, and of log growth
        self.card_stability = _scattered(0.8, 0.2, rng)
        self.card_growth = _scattered(0.7, 0.2, rng)
        # Log-odds of knowing a new card of middling difficulty
        self.first_level = rng.normal(0.3, 0.8)
        # Log-odds of pressing Hard or Easy after a middling recall
        self.hard_habit = -np.inf if passes_only else rng.normal(-2.1, 1.0)
        self.easy_habit = -np.inf if passes_only else rng.normal(-2.3, 1.2)
        # [4]: Repetitions on the same day after Again, by state
        self.steps = np.repeat([rng.integers(1, 3), int(rng.random() < 0.9)], 2)
        # Chance to study on the day after one with study, and after one without
        self.study_chances = (goes_on, 0.25 + 0.6 * goes_on)
        self.promptness = rng.uniform(0.7, 1.0)  # Share of due cards done on a day of study
        self.sitting_share = rng.random()  # Share of days with a second sitting
        self.decks = int(rng.geometric(1 / 5))  # How many decks their cards are in
        self.leech_lapses = rng.integers(6, 17)  # A card forgotten this often is given up
        self.answer_ms = _scattered(9000, 0.6, rng)  # Median time to answer, in milliseconds


def _scattered(median: float, deviation: float, rng: np.random.Generator) -> float:
    """Draw a number with the given median and standard deviation of its logarithm."""
    return float(median * np.exp(deviation * rng.standard_normal()))


def bounded(values: FloatArray, least: float, most: float) -> FloatArray:
    """Keep values between bounds; `numpy.clip` takes longer for few values."""
    return np.minimum(np.maximum(values, least), most)
