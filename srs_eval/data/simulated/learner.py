"""Who the simulated users are: how much they study, how they remember and how they answer.

Medians and spreads were moved until logs had the statistics of real ones: `docs/synthetic.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from srs_eval.data.simulated.scheduler import OWN, App, draw_app
from srs_eval.nouns import FloatArray, IntArray

# Scored reviews per user of the public srs-benchmark: minimum assumed, the nine published
# percentiles, and the published maximum.
_SIZE_SHARES = (0.0, 0.01, 0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99, 1.0)
_SIZES = (300, 785, 1635, 2350, 4780, 12500, 35995, 89750, 147010, 300220, 1939325)

# Five sixths of the reviews that can be scored are; the others only train.
_SCORED_SHARE = 5 / 6
# The outlier rule of the benchmark takes about this share of the simulated reviews away.
_KEPT_SHARE = 0.92
_FEWEST_REVIEWS = 600
_LATER_SHARE = 0.75

# Typical days of a log with 15,000 reviews on later days, and the power of their number.
_LIFE_DAYS, _LIFE_POWER = 480, 0.35
_SHORTEST_LIFE, _LONGEST_LIFE = 45, 4000
# Who fails much more than the app promises gives up before they have a long log.
_LEAST_LEVEL = 0.7
_MOST_SESSION_ABILITY = 2.0
_PASSES_ONLY = 0.2

_FIRST_STABILITY = np.array([0.35, 1.3, 2.6, 9.0])
_GROWTH, _RELAPSE = np.e, 8.0


@dataclass(frozen=True, slots=True)
class Memory:
    """How one person really remembers, which no model is shown; the same for all of their cards.

    Stability grows and shrinks much as in FSRS-6, so that models of that family have something to
    learn. The rest departs from it on purpose: `docs/synthetic.md` lists what and why.
    """

    # [4]: Days until recall falls to 0.9, after a first Again, Hard, Good, Easy
    first_stability: FloatArray
    # How much a recall lengthens stability, how that falls off as stability grows, and how it gains
    # from waiting
    growth: float
    saturation: float
    spacing: float
    share: FloatArray  # [5]: Share of the usual growth, by rating: Hard below 1, Easy above
    # Size of stability after forgetting, its power of the stability lost, and its gain from waiting
    relapse: float
    relapse_power: float
    relapse_spacing: float
    shape: float  # Exponent of the stretched-exponential forgetting curve, at most 1
    # Chance to answer without remembering, and to fail although remembering
    guess: float
    slip: float
    # Log-odds of recall ten minutes after an answer, for a stability of three days
    step_level: float


@dataclass(frozen=True, slots=True)
class Learner:
    """One simulated person."""

    later_reviews: int  # Reviews made on a later day than the card's review before
    life_days: int  # Days between the first and the last chance to study
    app: App  # What schedules their cards
    memory: Memory  # How they remember
    level: float  # What is added to their log-odds of recall, always
    # Spread of the log-odds of recall over weeks, from day to day, and within a session
    slow_ability: float
    daily_ability: float
    session_ability: float
    trend: float  # Change of log-odds of recall over the whole life
    # Spread of cards: of log stability at first, and of log growth
    card_stability: float
    card_growth: float
    first_level: float  # Log-odds of knowing a new card of middling difficulty
    # Log-odds of pressing Hard or Easy after a middling recall
    hard_habit: float
    easy_habit: float
    steps: IntArray  # [4]: Repetitions on the same day after Again, by state
    # Chance to study on the day after one with study, and after one without
    study_chances: tuple[float, float]
    promptness: float  # Share of due cards done on a day with study
    sitting_share: float  # Share of days with a second sitting
    decks: int  # How many decks their cards are in
    leech_lapses: int  # A card forgotten this often is given up
    answer_ms: float  # Median time to answer, in milliseconds


def draw_later_reviews(
    rng: np.random.Generator, size_scale: float, max_reviews: int | None = None
) -> int:
    """Draw how many reviews on later days a user makes: the first draw of every user.

    A `size_scale` of 0.1 is for a tenth of the published sizes. A log of `max_reviews` rows has
    up to 0.75 times as many such reviews.
    """
    scored = size_scale * math.exp(np.interp(rng.random(), _SIZE_SHARES, np.log(_SIZES)))
    reviews = max(_FEWEST_REVIEWS, round(scored / _SCORED_SHARE / _KEPT_SHARE))
    if max_reviews is None:
        return reviews
    return min(reviews, math.ceil(_LATER_SHARE * max_reviews))


def draw_learner(later_reviews: int, rng: np.random.Generator, scheduler: str = OWN) -> Learner:
    """Draw a person who makes so many reviews on later days.

    Longer logs take longer lives, with much room around that.
    """
    life_days = _scattered(_LIFE_DAYS * (later_reviews / 15000) ** _LIFE_POWER, 0.5, rng)
    passes_only = rng.random() < _PASSES_ONLY
    goes_on = float(np.clip(rng.beta(5, 2.2), 0.3, 0.98))
    return Learner(
        later_reviews=later_reviews,
        life_days=int(np.clip(life_days, _SHORTEST_LIFE, _LONGEST_LIFE)),
        app=draw_app(rng, scheduler),
        memory=_draw_memory(rng),
        level=max(_LEAST_LEVEL, rng.normal(1.3, 0.9)),
        slow_ability=_scattered(0.35, 0.4, rng),
        daily_ability=_scattered(0.2, 0.8, rng),
        session_ability=min(_scattered(0.9, 0.8, rng), _MOST_SESSION_ABILITY),
        trend=rng.normal(0, 0.5),
        card_stability=_scattered(0.8, 0.2, rng),
        card_growth=_scattered(0.7, 0.2, rng),
        first_level=rng.normal(0.3, 0.8),
        hard_habit=-np.inf if passes_only else rng.normal(-2.1, 1.0),
        easy_habit=-np.inf if passes_only else rng.normal(-2.3, 1.2),
        steps=np.repeat([rng.integers(1, 3), int(rng.random() < 0.9)], 2),
        study_chances=(goes_on, 0.25 + 0.6 * goes_on),
        promptness=float(rng.uniform(0.7, 1.0)),
        sitting_share=float(rng.random()),
        decks=int(rng.geometric(1 / 5)),
        leech_lapses=int(rng.integers(6, 17)),
        answer_ms=_scattered(9000, 0.6, rng),
    )


def _draw_memory(rng: np.random.Generator) -> Memory:
    """Draw how a person remembers."""
    level = np.exp(0.3 * rng.standard_normal())
    first = _FIRST_STABILITY * level * np.exp(0.3 * rng.standard_normal(4))
    return Memory(
        first_stability=np.sort(first),
        growth=_GROWTH * np.exp(0.3 * rng.standard_normal()),
        saturation=float(np.clip(rng.normal(0.19, 0.06), 0.05, 0.4)),
        spacing=float(np.clip(rng.normal(0.6, 0.15), 0.3, 2.0)),
        share=np.array([np.nan, 1.0, rng.uniform(0.4, 0.9), 1.0, rng.uniform(1.2, 2.2)]),
        relapse=_RELAPSE * level * np.exp(0.3 * rng.standard_normal()),
        relapse_power=float(np.clip(rng.normal(0.26, 0.06), 0.1, 0.5)),
        relapse_spacing=float(np.clip(rng.normal(1.4, 0.4), 0.3, 2.5)),
        shape=float(rng.uniform(0.8, 1.0)),
        guess=float(rng.uniform(0.001, 0.005)),
        slip=0.003 * np.exp(0.8 * rng.standard_normal()),
        step_level=rng.normal(2.7, 0.8),
    )


def _scattered(median: float, deviation: float, rng: np.random.Generator) -> float:
    """Draw a number with the given median and standard deviation of its logarithm."""
    return float(median * np.exp(deviation * rng.standard_normal()))
