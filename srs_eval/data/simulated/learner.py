"""Who the simulated users are: how much they study, how they remember and how they answer."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from srs_eval.data.simulated.memory import Memory
from srs_eval.data.simulated.population import Pair, Population
from srs_eval.data.simulated.scheduler import OWN, App, draw_app
from srs_eval.nouns import FloatArray, IntArray

# Scored reviews per user of the public srs-benchmark: minimum assumed, the nine published
# percentiles, and the published maximum.
_SIZE_SHARES = (0.0, 0.01, 0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99, 1.0)
_SIZES = (300, 785, 1635, 2350, 4780, 12500, 35995, 89750, 147010, 300220, 1939325)

# Five sixths of the reviews that can be scored are; the others only train.
_SCORED_SHARE = 5 / 6
# The outlier rule of the benchmark takes about this share of the simulated reviews away.
_KEPT_SHARE = 0.96
_FEWEST_REVIEWS = 600
_LATER_SHARE = 0.6
_MOST_SESSION_ABILITY = 2.0

_FIRST_STABILITY = np.array([0.35, 1.3, 2.6, 9.0])


@dataclass(frozen=True, slots=True)
class Learner:
    """One simulated person."""

    population: Population  # What they were drawn from, with the effects that are the same for all
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
    # Spread of cards: of log stability at first, of log growth, and of difficulty
    card_stability: float
    card_growth: float
    card_difficulty: float
    first_level: float  # Log-odds of knowing a new card of middling difficulty
    # Log-odds of pressing Hard or Easy after a middling recall
    hard_habit: float
    easy_habit: float
    steps: IntArray  # [4]: Repetitions on the same day after Again, by state
    study_chances: Pair  # Chance to study on the day after one with study, and after one without
    promptness: float  # Share of due cards done on a day with study
    sitting_share: float  # Share of days with a second sitting
    decks: int  # How many decks their cards are in
    leech_lapses: int  # A card forgotten this often is given up
    answer_ms: float  # Median time to answer, in milliseconds


def published_size(share: FloatArray | float) -> FloatArray:
    """Return the quantile of scored reviews per user, at a share in [0, 1].

    Interpolates the published percentiles (`_SIZES`) in logarithms.

    >>> published_size(0.5).round().item()
    12500.0
    """
    result: FloatArray = np.exp(np.interp(share, _SIZE_SHARES, np.log(_SIZES)))
    return result


def draw_later_reviews(
    rng: np.random.Generator, size_scale: float, max_reviews: int | None = None
) -> int:
    """Draw how many reviews on later days a user makes: the first draw of every user.

    A `size_scale` of 0.1 is for a tenth of the published sizes. A log of `max_reviews` rows has
    about 0.6 times as many such reviews.
    """
    scored = size_scale * float(published_size(rng.random()))
    reviews = max(_FEWEST_REVIEWS, round(scored / _SCORED_SHARE / _KEPT_SHARE))
    if max_reviews is None:
        return reviews
    return min(reviews, math.ceil(_LATER_SHARE * max_reviews))


def draw_learner(
    later_reviews: int, population: Population, rng: np.random.Generator, scheduler: str = OWN
) -> Learner:
    """Draw a person who makes so many reviews on later days.

    Longer logs take longer lives, with much room around that.
    """
    life_days = (
        population.life_days * (later_reviews / 15000) ** 0.35 * np.exp(0.5 * rng.standard_normal())
    )
    passes_only = rng.random() < 0.2
    level, level_spread, least_level = population.level
    # What version 1 does not have is drawn apart, so that its numbers stay as they were.
    (other,) = rng.spawn(1)
    return Learner(
        population=population,
        later_reviews=later_reviews,
        life_days=int(np.clip(life_days, 45, 4000)),
        app=draw_app(rng, scheduler),
        memory=draw_memory(population, rng),
        # Who fails much more than the app promises gives up before they have a long log.
        level=max(least_level, rng.normal(level, level_spread)),
        slow_ability=_scattered(population.slow, rng),
        daily_ability=_scattered(population.daily, rng),
        session_ability=min(_scattered(population.session, other), _MOST_SESSION_ABILITY),
        trend=population.trend * rng.standard_normal(),
        card_stability=_scattered((population.card_stability, 0.2), rng),
        card_growth=_scattered((0.4, 0.2), rng),
        card_difficulty=1.8,
        first_level=rng.normal(population.first_level, 0.8),
        hard_habit=-np.inf if passes_only else rng.normal(population.hard, 1.0),
        easy_habit=-np.inf if passes_only else rng.normal(population.easy, 1.2),
        steps=np.repeat(
            [_one_of(population.learning_steps, rng), _one_of(population.relearning_steps, rng)], 2
        ),
        study_chances=population.study_chances(rng),
        promptness=float(rng.uniform(0.4, 1.0)),
        sitting_share=float(other.uniform(*population.sitting_share)),
        decks=int(other.geometric(1 / population.decks)),
        leech_lapses=int(rng.integers(6, 17)),
        answer_ms=_scattered(population.answer_ms, rng),
    )


def _scattered(spread: Pair, rng: np.random.Generator) -> float:
    """Draw a number with the given median and standard deviation of its logarithm."""
    median, deviation = spread
    return float(median * np.exp(deviation * rng.standard_normal()))


def _one_of(choices: tuple[int, ...], rng: np.random.Generator) -> int:
    """Draw one of some equally likely numbers."""
    return choices[rng.integers(0, len(choices))]


def draw_memory(population: Population, rng: np.random.Generator) -> Memory:
    """Draw how a person remembers, around the published medians of FSRS-6."""
    level = np.exp(0.5 * rng.standard_normal())
    first = _FIRST_STABILITY * level * np.exp(0.3 * rng.standard_normal(4))
    return Memory(
        first_stability=np.sort(first),
        growth=np.exp(2.0 + 0.35 * rng.standard_normal()),
        saturation=float(np.clip(rng.normal(0.19, 0.06), 0.05, 0.4)),
        spacing=float(np.clip(rng.normal(0.9, 0.25), 0.3, 2.0)),
        share=np.array([np.nan, 1.0, rng.uniform(0.4, 0.9), 1.0, rng.uniform(1.2, 2.2)]),
        relapse=1.6 * level * np.exp(0.3 * rng.standard_normal()),
        relapse_power=float(np.clip(rng.normal(0.26, 0.06), 0.1, 0.5)),
        relapse_spacing=float(np.clip(rng.normal(1.4, 0.4), 0.3, 2.5)),
        shape=float(rng.uniform(*population.shape)),
        guess=float(rng.uniform(*population.guess)),
        slip=0.005 * np.exp(0.8 * rng.standard_normal()),
        step_level=rng.normal(2.7, 0.8),
    )
