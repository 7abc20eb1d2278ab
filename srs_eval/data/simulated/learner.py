"""Who the simulated users are: how much they study, how they remember and how they answer."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from srs_eval.data.simulated.memory import Memory
from srs_eval.data.simulated.scheduler import App, draw_app
from srs_eval.nouns import FloatArray

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

_FIRST_STABILITY = np.array([0.35, 1.3, 2.6, 9.0])


@dataclass(frozen=True, slots=True)
class Learner:
    """One simulated person.

    Attributes
    ----------
    later_reviews : int
        Reviews made on a later day than the card's review before.
    life_days : int
        Days between the first and the last chance to study.
    app : App
        What schedules their cards.
    memory : Memory
        How they remember.
    level : float
        What is added to their log-odds of recall, always.
    slow_ability, daily_ability : float
        Spread of the log-odds of recall over weeks, and from day to day.
    trend : float
        Change of log-odds of recall over the whole life.
    card_stability, card_growth, card_difficulty : float
        Spread of cards: of log stability at first, of log growth, and of difficulty.
    first_level : float
        Log-odds of knowing a new card of middling difficulty.
    hard_habit, easy_habit : float
        Log-odds of pressing Hard or Easy after a middling recall.
    learning_steps, relearning_steps : int
        Repetitions on the same day after a new card, and after forgetting.
    attendance, promptness : float
        Share of days with any study, and share of due cards done on such a day.
    leech_lapses : int
        A card forgotten this often is given up.
    answer_ms : float
        Median time to answer, in milliseconds.
    """

    later_reviews: int
    life_days: int
    app: App
    memory: Memory
    level: float
    slow_ability: float
    daily_ability: float
    trend: float
    card_stability: float
    card_growth: float
    card_difficulty: float
    first_level: float
    hard_habit: float
    easy_habit: float
    learning_steps: int
    relearning_steps: int
    attendance: float
    promptness: float
    leech_lapses: int
    answer_ms: float


def published_size(share: FloatArray | float) -> FloatArray:
    """Return the quantile of scored reviews per user.

    Interpolates the published percentiles (`_SIZES`) in logarithms.

    Parameters
    ----------
    share : float or float64 [n], in [0, 1]

    Examples
    --------
    >>> published_size(0.5).round().item()
    12500.0
    """
    result: FloatArray = np.exp(np.interp(share, _SIZE_SHARES, np.log(_SIZES)))
    return result


def draw_later_reviews(
    rng: np.random.Generator, size_scale: float, max_reviews: int | None = None
) -> int:
    """Draw how many reviews on later days a user makes: the first draw of every user.

    Parameters
    ----------
    size_scale : float
        1 for the published sizes, 0.1 for a tenth of them.
    max_reviews : int, optional
        Rows wanted of the log; a log so long has about 0.6 times as many such reviews.
    """
    scored = size_scale * float(published_size(rng.random()))
    reviews = max(_FEWEST_REVIEWS, round(scored / _SCORED_SHARE / _KEPT_SHARE))
    if max_reviews is None:
        return reviews
    return min(reviews, math.ceil(_LATER_SHARE * max_reviews))


def draw_learner(later_reviews: int, rng: np.random.Generator) -> Learner:
    """Draw a person who makes so many reviews on later days.

    Longer logs take longer lives, with much room around that.
    """
    life_days = 400 * (later_reviews / 15000) ** 0.35 * np.exp(0.5 * rng.standard_normal())
    passes_only = rng.random() < 0.2
    return Learner(
        later_reviews=later_reviews,
        life_days=int(np.clip(life_days, 45, 4000)),
        app=draw_app(rng),
        memory=draw_memory(rng),
        # Who fails much more than the app promises gives up before they have a long log.
        level=max(-0.2, rng.normal(0.4, 0.8)),
        slow_ability=0.3 * np.exp(0.3 * rng.standard_normal()),
        daily_ability=0.3 * np.exp(0.3 * rng.standard_normal()),
        trend=0.6 * rng.standard_normal(),
        card_stability=0.9 * np.exp(0.2 * rng.standard_normal()),
        card_growth=0.4 * np.exp(0.2 * rng.standard_normal()),
        card_difficulty=1.8,
        first_level=rng.normal(1.0, 0.8),
        hard_habit=-np.inf if passes_only else rng.normal(-2.3, 1.0),
        easy_habit=-np.inf if passes_only else rng.normal(-3.2, 1.2),
        learning_steps=int(rng.integers(1, 4)),
        relearning_steps=int(rng.integers(0, 3)),
        attendance=float(rng.uniform(0.7, 1.0)),
        promptness=float(rng.uniform(0.4, 1.0)),
        leech_lapses=int(rng.integers(6, 17)),
        answer_ms=6000 * np.exp(0.5 * rng.standard_normal()),
    )


def draw_memory(rng: np.random.Generator) -> Memory:
    """Draw how a person remembers, around the published medians of FSRS-6."""
    level = np.exp(0.5 * rng.standard_normal())
    first = _FIRST_STABILITY * level * np.exp(0.3 * rng.standard_normal(4))
    return Memory(
        first_stability=np.sort(first),
        growth=np.exp(2.0 + 0.35 * rng.standard_normal()),
        saturation=float(np.clip(rng.normal(0.19, 0.06), 0.05, 0.4)),
        spacing=float(np.clip(rng.normal(0.9, 0.25), 0.3, 2.0)),
        hard_share=float(rng.uniform(0.4, 0.9)),
        easy_share=float(rng.uniform(1.2, 2.2)),
        relapse=1.6 * level * np.exp(0.3 * rng.standard_normal()),
        relapse_power=float(np.clip(rng.normal(0.26, 0.06), 0.1, 0.5)),
        relapse_spacing=float(np.clip(rng.normal(1.4, 0.4), 0.3, 2.5)),
        shape=float(rng.uniform(0.6, 1.0)),
        guess=float(rng.uniform(0.002, 0.05)),
        slip=0.005 * np.exp(0.8 * rng.standard_normal()),
        step_level=rng.normal(2.7, 0.8),
    )
