"""What simulated people are drawn from: one set of constants per version of `data=synthetic`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from srs_eval.nouns import FloatArray, IntArray

Pair = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Population:
    """Distributions of what differs between people, and effects that are the same for all.

    A spread is a pair: median over people, and standard deviation of its logarithm. What depends on
    the rating is looked up by 1 to 4, so entry 0 is not used.
    """

    life_days: float  # Typical days of a log with 15,000 reviews on later days
    # Draw the chances to study on the day after one with study, and after one without
    study_chances: Callable[[np.random.Generator], Pair]
    # Draw the first days and the lengths of breaks, for a life of so many days
    breaks: Callable[[int, np.random.Generator], tuple[IntArray, IntArray]]
    burst: float  # Spread of the log number of new cards, over days
    # Time of study per review; None for one hour per day whatever is due
    review_seconds: float | None
    sitting_share: Pair  # Bounds of the share of days with a second sitting
    decks: float  # Mean number of decks
    # Share of reviews made deck by deck, and of those beside their cohort within the deck
    deck_order: float
    cohort_order: float
    # Mean, standard deviation and least value of what is added to the log-odds of recall
    level: tuple[float, float, float]
    first_level: float  # Mean of the log-odds of knowing a new card
    # Spreads of ability over weeks, from day to day, and within a session
    slow: Pair
    daily: Pair
    session: Pair
    # Spread of ability over the life, and of a cohort on one day
    trend: float
    cohort: float
    card_odds: float  # Log-odds of recall that a card one standard deviation more difficult loses
    card_stability: float  # Spread of the log of cards' first stability
    shape: Pair  # Bounds of the exponent of the forgetting curve
    step_effect: FloatArray  # [5]: Factors of stability on the same day, by rating
    guess: Pair  # Bounds of the chance to guess
    # Typical log-odds of Hard and Easy, and what a first review adds to those of Easy
    hard: float
    easy: float
    easy_at_first: float
    # Equally likely numbers of repetitions on the same day
    learning_steps: tuple[int, ...]
    relearning_steps: tuple[int, ...]
    answer_ms: Pair  # Spread of the time of a typical answer
    slower: FloatArray  # [5]: Log time by rating, against Good
    # Spread of log time between answers, and share of answers that take three times as long
    noise: float
    interrupted: float
    card_time: Pair  # Log time per standard deviation of the difficulty of a card, and of its own
    ease_time: FloatArray  # [5]: Log time per log-odds of recall, by rating
    # [4]: Log time of reviews by state: new, learning, review and relearning
    state_time: FloatArray
    # Spread of log time from day to day, and within a session
    daily_time: float
    session_time: float


def _independent_days(rng: np.random.Generator) -> Pair:
    """Draw the same chance to study on any day."""
    chance = float(rng.uniform(0.7, 1.0))
    return chance, chance


def _runs_of_days(rng: np.random.Generator) -> Pair:
    """Draw a chance to continue studying, and a smaller one to start again."""
    chance = float(np.clip(rng.beta(5, 2.2), 0.3, 0.98))
    return chance, 0.25 + 0.6 * chance


def _holidays(days: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Draw a break of nine days or so for every five months."""
    count = days // 150
    return rng.integers(0, days, count), rng.geometric(1 / 9, count)


def _pauses(days: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Draw six breaks a year, of 18 days in the median and a quarter of the life at most."""
    count = rng.poisson(6 * days / 365)
    length = np.exp(np.log(18) + 1.3 * rng.standard_normal(count))
    return rng.integers(0, days, count), np.minimum(length, days / 4).astype(np.int64)


POPULATIONS = {
    1: Population(
        life_days=400,
        study_chances=_independent_days,
        breaks=_holidays,
        burst=0.8,
        review_seconds=None,
        sitting_share=(0.0, 0.0),
        decks=1.0,
        deck_order=0.0,
        cohort_order=0.0,
        level=(0.4, 0.8, -0.2),
        first_level=1.0,
        slow=(0.3, 0.3),
        daily=(0.3, 0.3),
        session=(0.0, 0.0),
        trend=0.6,
        cohort=0.0,
        card_odds=0.0,
        card_stability=0.9,
        shape=(0.6, 1.0),
        step_effect=np.array([np.nan, 0.75, 1.12, 1.12, 1.12]),
        guess=(0.002, 0.05),
        hard=-2.3,
        easy=-3.2,
        easy_at_first=0.8,
        learning_steps=(1, 2, 3),
        relearning_steps=(0, 1, 2),
        answer_ms=(6000, 0.5),
        slower=np.array([np.nan, 0.35, 0.45, 0.0, -0.35]),
        noise=0.6,
        interrupted=0.0,
        card_time=(0.0, 0.0),
        ease_time=np.zeros(5),
        state_time=np.zeros(4),
        daily_time=0.0,
        session_time=0.0,
    ),
    2: Population(
        life_days=480,
        study_chances=_runs_of_days,
        breaks=_pauses,
        burst=0.9,
        review_seconds=20.0,
        sitting_share=(0.0, 1.0),
        decks=5.0,
        deck_order=0.97,
        cohort_order=0.6,
        level=(1.35, 0.8, 0.6),
        first_level=0.3,
        slow=(0.45, 0.4),
        daily=(0.2, 0.8),
        session=(0.9, 0.8),
        trend=0.95,
        cohort=0.5,
        card_odds=1.0,
        card_stability=0.8,
        shape=(0.25, 0.5),
        step_effect=np.array([np.nan, 0.6, 1.3, 1.3, 1.3]),
        guess=(0.001, 0.015),
        hard=-2.1,
        easy=-2.3,
        easy_at_first=2.0,
        learning_steps=(1, 2),
        relearning_steps=(0, 1, 1, 1, 1, 1, 1, 1, 1, 1),
        answer_ms=(9000, 0.6),
        slower=np.array([np.nan, 0.30, 0.25, 0.0, -0.30]),
        noise=0.54,
        interrupted=0.12,
        card_time=(0.27, 0.27),
        ease_time=np.array([np.nan, 0.0, -0.05, -0.05, -0.05]),
        state_time=np.array([0.15, -0.25, 0.0, -0.25]),
        daily_time=0.12,
        session_time=0.42,
    ),
}
POPULATIONS[3] = POPULATIONS[2]
