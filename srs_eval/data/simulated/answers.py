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
from srs_eval.nouns import BoolArray, FloatArray, IntArray

_DAY = 86400.0
_AGAIN, _HARD, _GOOD, _EASY = 1, 2, 3, 4
_SHORTEST_MS, _LONGEST_MS = 400.0, 60_000.0
# Log of the time an answer takes against that of Good: forgetting and hesitating are slow.
_SLOWER = np.array([0.35, 0.45, 0.0, -0.35])


def recall_probability(
    cards: Cards, learner: Learner, calendar: Calendar
) -> tuple[FloatArray, FloatArray]:
    """Probability that each card is answered right, given all there is to know before it.

    Returns
    -------
    truth : float64 [n]
        Probability of any rating but Again.
    remembered : float64 [n]
        Share of the forgetting curve left, without the day's form, guesses and slips.
    """
    ability = calendar.ability[cards.day]
    memory = learner.memory
    if (cards.last_day == NEVER).all():
        known = learner.first_level + 0.4 * np.log(cards.stability) - 0.3 * (cards.difficulty - 5)
        return answer_probability(memory, known + ability), np.ones(len(known))
    seconds = cards.second - cards.answered
    remembered = retrievability(seconds / _DAY, cards.stability, memory.shape)
    later = cards.day > cards.last_day
    odds = np.where(later, log_odds(remembered), step_odds(memory, seconds, cards.stability))
    return answer_probability(memory, odds + ability), remembered


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
    easy = _share(learner.easy_habit + np.where(new, 0.8, -strain))
    # Easy is given to what is left, so that the two shares never exceed the whole.
    easy *= 1 - hard
    drawn = rng.random(len(recalled))
    rating = np.where(drawn < hard, _HARD, np.where(drawn < hard + easy, _EASY, _GOOD))
    return np.where(recalled, rating, _AGAIN)


def draw_duration(rating: IntArray, learner: Learner, rng: np.random.Generator) -> FloatArray:
    """Whole milliseconds an answer takes, from 400 to 60,000."""
    log_time = _SLOWER[rating - 1] + 0.6 * rng.standard_normal(len(rating))
    return np.clip(np.round(learner.answer_ms * np.exp(log_time)), _SHORTEST_MS, _LONGEST_MS)


def _share(odds: FloatArray) -> FloatArray:
    """Probability of some log-odds."""
    share: FloatArray = 1 / (1 + np.exp(-odds))
    return share
