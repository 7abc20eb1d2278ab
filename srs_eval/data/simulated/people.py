"""Who the simulated users are: how much they study, how they remember and how they answer.

Medians and spreads were moved until logs had the statistics of real ones: `docs/synthetic.md`.
"""

from __future__ import annotations

import math

import numpy as np

from srs_eval.data.simulated.scheduler import App

# Scored reviews per user of the public srs-benchmark: minimum assumed, the nine published
# percentiles, and the published maximum.
_SIZE_SHARES = (0.0, 0.01, 0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99, 1.0)
_SIZES = (300, 785, 1635, 2350, 4780, 12500, 35995, 89750, 147010, 300220, 1939325)

# Five sixths of the reviews that can be scored are; the others only train.
_SCORED_SHARE = 5 / 6
# The outlier rule of the benchmark takes about this share of the simulated reviews away.
_KEPT_SHARE = 0.92


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


class Learner:
    """A person who makes `later_reviews` reviews on a later day than the card's review before.

    A `size_scale` of 0.1 is for a tenth of the published sizes. Longer logs take longer lives, with
    much room around that.
    """

    def __init__(
        self, rng: np.random.Generator, size_scale: float, max_reviews: int | None
    ) -> None:
        shares, sizes = _SIZE_SHARES, np.log(_SIZES)
        scored = size_scale * math.exp(np.interp(rng.random(), shares, sizes))
        # A log of `max_reviews` rows has up to 0.75 times as many such reviews.
        most = np.inf if max_reviews is None else math.ceil(0.75 * max_reviews)
        later_reviews = int(min(max(600, round(scored / _SCORED_SHARE / _KEPT_SHARE)), most))
        self.later_reviews = later_reviews
        days = _scattered(480 * (later_reviews / 15000) ** 0.35, 0.5, rng)
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
