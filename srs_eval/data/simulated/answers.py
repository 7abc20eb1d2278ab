"""What a simulated user answers: the true probability, the button, and the time it takes."""

from __future__ import annotations

import numpy as np

from srs_eval.data.simulated.calendar import Calendar
from srs_eval.data.simulated.cards import NEVER, Cards
from srs_eval.data.simulated.learner import Learner
from srs_eval.data.simulated.memory import (
    answer_probability,
    log_odds,
    retrievability,
    step_odds,
)
from srs_eval.data.simulated.sessions import hashed_normal
from srs_eval.nouns import BoolArray, FloatArray, IntArray

_DAY = 86400.0
_AGAIN, _HARD, _GOOD, _EASY = 1, 2, 3, 4
_SHORTEST_MS, _LONGEST_MS = 400.0, 60_000.0


def recall_probability(
    cards: Cards, learner: Learner, calendar: Calendar
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Probability that each card is answered right, given all there is to know before it.

    Returns
    -------
    truth : float64 [n]
        Probability of any rating but Again.
    remembered : float64 [n]
        Share of the forgetting curve left, without abilities, guesses and slips.
    ease : float64 [n]
        Log-odds of recall without what the day, the session and the cohort add.
    """
    memory, population = learner.memory, learner.population
    if (cards.last_day == NEVER).all():
        remembered = np.ones(len(cards.day))
        odds = learner.first_level + 0.4 * np.log(cards.stability) - 0.3 * (cards.difficulty - 5)
    else:
        seconds = cards.second - cards.answered
        remembered = retrievability(seconds / _DAY, cards.stability, memory.shape)
        later = cards.day > cards.last_day
        odds = np.where(later, log_odds(remembered), step_odds(memory, seconds, cards.stability))
        odds -= population.card_odds * (cards.difficulty - 5) / learner.card_difficulty
    ability = calendar.ability[cards.day]
    ability += calendar.recall_walk[calendar.cell(cards.day, cards.second)]
    ability += population.cohort * hashed_normal(calendar.keys[0], cards.cohort, cards.day)
    return answer_probability(memory, odds + ability), remembered, odds + learner.level


def draw_rating(
    cards: Cards,
    recalled: BoolArray,
    remembered: FloatArray,
    learner: Learner,
    rng: np.random.Generator,
) -> IntArray:
    """Press a button: Again if it was not recalled, else by how hard recalling was."""
    strain = 0.5 * (2.2 - np.clip(log_odds(remembered), -2, 6)) + 0.25 * (cards.difficulty - 5)
    new = cards.last_day == NEVER
    hard = _share(learner.hard_habit + np.where(new, 0.0, strain))
    easy = _share(learner.easy_habit + np.where(new, learner.population.easy_at_first, -strain))
    # Easy is given to what is left, so that the two shares never exceed the whole.
    easy *= 1 - hard
    drawn = rng.random(len(recalled))
    rating = np.where(drawn < hard, _HARD, np.where(drawn < hard + easy, _EASY, _GOOD))
    return np.where(recalled, rating, _AGAIN)


def draw_duration(
    cards: Cards,
    rating: IntArray,
    ease: FloatArray,
    learner: Learner,
    calendar: Calendar,
    rng: np.random.Generator,
) -> FloatArray:
    """Whole milliseconds an answer takes, from 400 to 60,000."""
    population = learner.population
    log_time = population.slower[rating - 1] + population.noise * rng.standard_normal(len(rating))
    by_difficulty, by_card = population.card_time
    log_time += by_difficulty * (cards.difficulty - 5) / learner.card_difficulty
    log_time += by_card * cards.slowness
    log_time += population.ease_time * (np.clip(ease, -2, 5) - 2) * (rating > _AGAIN)
    log_time += calendar.daily_time[cards.day]
    log_time += calendar.time_walk[calendar.cell(cards.day, cards.second)]
    log_time += population.first_time * (cards.last_day == NEVER)
    log_time += population.same_day_time * (cards.day == cards.last_day)
    if population.interrupted:
        log_time += np.log(3) * (rng.random(len(rating)) < population.interrupted)
    return np.clip(np.round(learner.answer_ms * np.exp(log_time)), _SHORTEST_MS, _LONGEST_MS)


def _share(odds: FloatArray) -> FloatArray:
    """Probability of some log-odds."""
    share: FloatArray = 1 / (1 + np.exp(-odds))
    return share
