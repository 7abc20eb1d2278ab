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
    log_odds,
    retrievability,
    step_odds,
)
from srs_eval.nouns import BoolArray, FloatArray, IntArray

_DAY = 86400.0
_AGAIN, _HARD, _GOOD, _EASY = 1, 2, 3, 4
_SHORTEST_MS, _LONGEST_MS = 400.0, 60_000.0


@dataclass(frozen=True, slots=True)
class Recall:
    """How well each card is remembered, given all there is to know before its review."""

    truth: FloatArray  # [n]: Probability of any rating but Again
    # [n]: Share of the forgetting curve left, without abilities, guesses and slips; its log-odds
    remembered: FloatArray
    odds: FloatArray
    ease: FloatArray  # [n]: Log-odds of recall without what the day, the session and the cohort add


def recall_of(cards: Cards, moment: IntArray, learner: Learner, calendar: Calendar) -> Recall:
    """Compute how well each card is remembered."""
    memory = learner.memory
    if cards.new:
        remembered: FloatArray = np.ones(len(cards.day))
        odds = log_odds(remembered)
        ease = learner.first_level + 0.4 * np.log(cards.stability) - 0.3 * cards.difficulty
    else:
        seconds = cards.second - cards.answered
        remembered = retrievability(seconds / _DAY, cards.stability, memory.shape)
        odds = log_odds(remembered)
        ease = np.where(cards.later_day, odds, step_odds(memory, seconds, cards.stability))
        ease -= learner.population.card_odds * cards.difficulty / learner.card_difficulty
    ability = calendar.ability.take(moment) + cards.cohort_ability
    truth = answer_probability(memory, ease + ability)
    return Recall(truth, remembered, odds, ease + learner.level)


def draw_rating(
    cards: Cards,
    recalled: BoolArray,
    odds: FloatArray,
    learner: Learner,
    rng: np.random.Generator,
) -> IntArray:
    """Press a button: Again if it was not recalled, else by how hard recalling was."""
    if cards.new:
        hard = _share(learner.hard_habit)
        easy = _share(learner.easy_habit + learner.population.easy_at_first)
    else:
        strain = 0.5 * (2.2 - bounded(odds, -2, 6)) + 0.25 * cards.difficulty
        hard, easy = _share(learner.hard_habit + strain), _share(learner.easy_habit - strain)
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
    population = learner.population
    log_time = population.slower[rating] + population.noise * rng.standard_normal(len(rating))
    log_time += cards.slowness + population.state_time[cards.state] + calendar.log_time.take(moment)
    log_time += population.ease_time[rating] * (bounded(ease, -2, 5) - 2)
    if population.interrupted:
        log_time += np.log(3) * (rng.random(len(rating)) < population.interrupted)
    duration = learner.answer_ms * np.exp(log_time)
    return bounded(duration.round(), _SHORTEST_MS, _LONGEST_MS)


def _share(odds: FloatArray | float) -> FloatArray:
    """Probability of some log-odds."""
    share: FloatArray = 1 / (1 + np.exp(-odds))
    return share
