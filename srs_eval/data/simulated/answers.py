"""What a simulated user answers: the true probability, the button, and the time it takes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from srs_eval.data.simulated.calendar import Calendar
from srs_eval.data.simulated.cards import Cards
from srs_eval.data.simulated.learner import Learner
from srs_eval.data.simulated.memory import (
    answer_probability,
    bounded,
    probability,
    remembered_odds,
    step_odds,
)
from srs_eval.nouns import BoolArray, FloatArray, IntArray

_DAY = 86400.0
_AGAIN, _HARD, _GOOD, _EASY = 1, 2, 3, 4
_EASY_AT_FIRST = 2.0
# Log-odds of recall that a card one standard deviation more difficult loses
_CARD_ODDS = 0.9
_SHORTEST_MS, _LONGEST_MS = 400.0, 60_000.0
# Log time by rating, against Good; by rating, per log-odds of recall; and by state of the card
_SLOWER = np.array([np.nan, 0.30, 0.25, 0.0, -0.30])
_EASE_TIME = np.array([np.nan, 0.0, -0.05, -0.05, -0.05])
_STATE_TIME = np.array([0.15, -0.25, 0.0, -0.25])
# Spread of log time between answers, and share of answers that take three times as long
_TIME_NOISE, _INTERRUPTED = 0.54, 0.12


@dataclass(frozen=True, slots=True)
class Recall:
    """How well each card is remembered, given all there is to know before its review."""

    truth: FloatArray  # [n]: Probability of any rating but Again
    # [n]: Log-odds of the share remembered, without abilities, guesses and slips
    odds: FloatArray
    ease: FloatArray  # [n]: Log-odds of recall without what the day, the session and the cohort add


def recall_of(cards: Cards, moment: IntArray, learner: Learner, calendar: Calendar) -> Recall:
    """Compute how well each card is remembered."""
    memory = learner.memory
    if cards.new:
        odds = np.full(len(cards.day), np.inf)
        ease = learner.first_level + 0.4 * np.log(cards.stability) - 0.54 * cards.difficulty
    else:
        seconds = cards.second - cards.answered
        odds = remembered_odds(seconds / _DAY, cards.stability, memory.shape)
        ease = np.where(cards.later_day, odds, step_odds(memory, seconds, cards.stability))
        ease -= _CARD_ODDS * cards.difficulty
    ability = calendar.ability.take(moment) + cards.cohort_ability
    return Recall(answer_probability(memory, ease + ability), odds, ease + learner.level)


def draw_rating(
    cards: Cards,
    recalled: BoolArray,
    odds: FloatArray,
    learner: Learner,
    rng: np.random.Generator,
) -> IntArray:
    """Press a button: Again if it was not recalled, else by how hard recalling was."""
    if cards.new:
        hard = probability(learner.hard_habit)
        easy = probability(learner.easy_habit + _EASY_AT_FIRST)
    else:
        strain = 0.5 * (2.2 - bounded(odds, -2, 6)) + 0.45 * cards.difficulty
        hard = probability(learner.hard_habit + strain)
        easy = probability(learner.easy_habit - strain)
    # Easy is given to what is left, so that the two shares never exceed the whole.
    easy *= 1 - hard
    drawn = rng.random(len(recalled))
    rating: IntArray = np.where(drawn < hard + easy, _EASY, _GOOD)
    rating[drawn < hard] = _HARD
    rating[~recalled] = _AGAIN
    return rating


def draw_duration(
    cards: Cards,
    rating: IntArray,
    ease: FloatArray,
    moment: IntArray,
    learner: Learner,
    calendar: Calendar,
    rng: np.random.Generator,
) -> FloatArray:
    """Whole milliseconds an answer takes, from 400 to 60,000."""
    log_time = _SLOWER[rating] + _TIME_NOISE * rng.standard_normal(len(rating))
    log_time += cards.slowness + _STATE_TIME[cards.state] + calendar.log_time.take(moment)
    log_time += _EASE_TIME[rating] * (bounded(ease, -2, 5) - 2)
    log_time += np.log(3) * (rng.random(len(rating)) < _INTERRUPTED)
    duration = learner.answer_ms * np.exp(log_time)
    return bounded(duration.round(), _SHORTEST_MS, _LONGEST_MS)
