"""Cards on their way from one answer to the next, all columns advancing together.

An answer is a true probability, a button and the time it takes; after it, the person's memory moves
as `Memory` says, and the app asks for the card again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri

from srs_eval.data.reviews import BoolArray, FloatArray, IntArray
from srs_eval.data.simulated.life import Life, hashed_uniform
from srs_eval.data.simulated.scheduler import bounded

NEW, LEARNING, REVIEW, RELEARNING = 0, 1, 2, 3

_DAY = 86400.0
_AGAIN, _HARD, _GOOD, _EASY = 1, 2, 3, 4
_LEAST_STABILITY, _MOST_STABILITY = 0.02, 36500.0  # Half an hour and a hundred years
# Factors of stability on the same day, by rating
_STEP_EFFECT = np.array([np.nan, 0.6, 1.3, 1.3, 1.3])
_FIRST_STEP, _LATER_STEP, _SHORTEST_STEP, _LONGEST_STEP = 60.0, 600.0, 20.0, 1500.0
_MOST_STEPS = 7
_STEPS_PASSED = np.array([0, 0, 0, 1, _MOST_STEPS])  # By rating
_STATE_OF_STEPS = np.array([LEARNING, LEARNING, RELEARNING, RELEARNING])  # By the state before
_DIFFICULTY_SPREAD = 1.8
# Log time by rating, against Good; by rating, per log-odds of recall; and by state of the card
_SLOWER = np.array([np.nan, 0.30, 0.25, 0.0, -0.30])
_EASE_TIME = np.array([np.nan, 0.0, -0.05, -0.05, -0.05])
_STATE_TIME = np.array([0.15, -0.25, 0.0, -0.25])


class Cards:
    """Cards about to be reviewed for the k-th time; every column has one entry per card.

    As all are at their k-th review, either all of them are new or none is.
    """

    def __init__(self, begin: int, count: int, life: Life) -> None:
        """Draw cards never seen before, and the days they come up."""
        learner, rng = life.learner, life.rng
        nothing: IntArray = np.zeros(count, np.int64)
        zeros: FloatArray = np.zeros(count)
        # Of the review to come; a cohort are the cards introduced in the same half of a day
        self.slot = np.searchsorted(life.arrivals, rng.random(count), side="right")
        self.day = life.day_of_slot[self.slot]
        self.card = np.arange(begin, begin + count, dtype=np.int64)
        self.cohort = 2 * self.day + self.card % 2
        self.state = np.full(count, NEW, np.int64)
        # Also what is added to the log-odds of recall on the day of the review
        self.second, self.cohort_ability = life.showing(self.slot, self.cohort)
        self.later_day = np.ones(count, np.bool_)  # Whether not on the day of the review before
        # Day of the review before, and second its answer was given; 0 while new
        self.last_day, self.answered = nothing, zeros
        # Same-day repetitions still to do and done, and how often it was forgotten
        self.steps_left = np.full(count, learner.steps[NEW])
        self.steps_today, self.lapses = nothing, nothing
        # The truth, fixed: in standard deviations, factors of stability gains and of stability
        # after forgetting, and what is added to the log time of answers
        on_scale = np.clip(5 + _DIFFICULTY_SPREAD * rng.standard_normal(count), 1, 10)
        self.difficulty = (on_scale - 5) / _DIFFICULTY_SPREAD
        growth = np.exp(learner.card_growth * rng.standard_normal(count))
        self.growth = growth * learner.memory.growth * (11 - on_scale)
        self.relapse = learner.memory.relapse * on_scale**-0.06
        slowness = 0.27 * ndtri(hashed_uniform(life.keys[2], self.card, self.cohort))
        self.slowness = slowness + 0.27 * self.difficulty
        # Days; while new, a multiplier of the person's first stability
        self.stability = np.exp(learner.card_stability * rng.standard_normal(count))
        # What the app believes, and the factor of stability gains it knows of cards of this kind,
        # which does not tell it all of their difficulty
        self.believed_stability, self.believed_difficulty = zeros, zeros
        self.kind = growth * np.exp(-0.4 * self.difficulty)

    @property
    def new(self) -> bool:
        """Whether the cards are at their first review."""
        return bool(self.state[0] == NEW)

    def keep(self, rows: BoolArray) -> None:
        """Keep some of the cards."""
        (kept,) = rows.nonzero()
        if len(kept) < len(rows):
            for name, column in vars(self).items():
                setattr(self, name, column[kept])


def recall_of(
    cards: Cards, moment: IntArray, life: Life
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Compute how well each card is remembered, given all there is to know before its review.

    Returns the probability of any rating but Again, the log-odds of the share remembered, without
    abilities, guesses and slips, and those of recall without what the day, the session and the
    cohort add.
    """
    learner, memory = life.learner, life.learner.memory
    if cards.new:
        odds = np.full(len(cards.day), np.inf)
        ease = learner.first_level + 0.4 * np.log(cards.stability) - 0.54 * cards.difficulty
    else:
        seconds = cards.second - cards.answered
        # A stretched exponential, through 0.9 at the stability.
        share = np.exp(np.log(0.9) * (seconds / _DAY / cards.stability) ** memory.shape)
        share = bounded(share, 1e-6, 1 - 1e-6)
        odds = np.log(share / (1 - share))
        # Minutes after the last answer, stability hardly matters.
        soon = memory.step_level + 0.4 * np.log(cards.stability / 3.0)
        ease = np.where(cards.later_day, odds, soon - 0.3 * np.log(seconds / 600.0))
        ease -= 0.9 * cards.difficulty
    ability = life.ability.take(moment) + cards.cohort_ability
    # Memory but for guesses and slips.
    truth = memory.guess + (1 - memory.guess - memory.slip) * _probability(ease + ability)
    return truth, odds, ease + learner.level


def draw_rating(cards: Cards, recalled: BoolArray, odds: FloatArray, life: Life) -> IntArray:
    """Press a button: Again if it was not recalled, else by how hard recalling was."""
    learner = life.learner
    if cards.new:
        hard = _probability(learner.hard_habit)
        easy = _probability(learner.easy_habit + 2.0)
    else:
        strain = 0.5 * (2.2 - bounded(odds, -2, 6)) + 0.45 * cards.difficulty
        hard = _probability(learner.hard_habit + strain)
        easy = _probability(learner.easy_habit - strain)
    # Easy is given to what is left, so that the two shares never exceed the whole.
    easy *= 1 - hard
    drawn = life.rng.random(len(recalled))
    conditions = [~recalled, drawn < hard, drawn < hard + easy]
    return np.select(conditions, [_AGAIN, _HARD, _EASY], _GOOD).astype(np.int64)


def draw_duration(
    cards: Cards, rating: IntArray, ease: FloatArray, moment: IntArray, life: Life
) -> FloatArray:
    """Whole milliseconds an answer takes, from 400 to 60,000; 12 % take three times as long."""
    log_time = _SLOWER[rating] + 0.54 * life.rng.standard_normal(len(rating))
    log_time += cards.slowness + _STATE_TIME[cards.state] + life.log_time.take(moment)
    log_time += _EASE_TIME[rating] * (bounded(ease, -2, 5) - 2)
    log_time += np.log(3) * (life.rng.random(len(rating)) < 0.12)
    duration = life.learner.answer_ms * np.exp(log_time)
    return bounded(duration.round(), 400.0, 60_000.0)


def learn(cards: Cards, rating: IntArray, odds: FloatArray, life: Life) -> None:
    """Move what the person knows, and what the app believes, past one answer.

    `odds` are the log-odds of the share that was remembered.
    """
    memory, app = life.learner.memory, life.learner.app
    if cards.new:
        stability = cards.stability * memory.first_stability[rating - 1]
        cards.believed_stability, cards.believed_difficulty = app.first(rating)
    else:
        stability = cards.stability * _STEP_EFFECT[rating]
        (rows,) = cards.later_day.nonzero()
        given, before = rating[rows], cards.stability[rows]
        forgotten = _probability(-odds[rows])
        gain = cards.growth[rows] * before**-memory.saturation
        gain *= np.expm1(memory.spacing * forgotten)
        recalled = before * (1 + gain * memory.share[given])
        after_lapse = cards.relapse[rows] * ((before + 1) ** memory.relapse_power - 1)
        failed = np.minimum(after_lapse * np.exp(memory.relapse_spacing * forgotten), before)
        noise = np.exp(0.1 * life.rng.standard_normal(len(rows)))
        stability[rows] = noise * np.where(given > _AGAIN, recalled, failed)
        # The app goes by the first review of each day.
        believed = cards.believed_stability[rows], cards.believed_difficulty[rows]
        days = cards.day[rows] - cards.last_day[rows]
        cards.believed_stability[rows], cards.believed_difficulty[rows] = app.later(
            believed, days, given, cards.kind[rows]
        )
    cards.stability = bounded(stability, _LEAST_STABILITY, _MOST_STABILITY)


def next_reviews(cards: Cards, rating: IntArray, duration_ms: FloatArray, life: Life) -> None:
    """Plan the next review of each card, later today or on a later day; drop the finished.

    A card is finished when it is given up as a leech, or when life ends before it is due.
    """
    learner, rng = life.learner, life.rng
    again = rating == _AGAIN
    cards.lapses = cards.lapses + (again & (cards.state == REVIEW))
    cards.answered = cards.second + duration_ms / 1000
    cards.steps_today = np.where(cards.later_day, 0, cards.steps_today + 1)
    # How many repetitions on the same day are left, and the state they are done in.
    steps = np.maximum(cards.steps_left - _STEPS_PASSED[rating], 0)
    cards.steps_left = np.where(again, learner.steps[cards.state], steps)
    cards.state = np.where(cards.steps_left > 0, _STATE_OF_STEPS[cards.state], REVIEW)
    today = (cards.steps_left > 0) & (cards.steps_today < _MOST_STEPS)
    drawn, lot, late = rng.random((3, len(rating)))
    put_off = today & (drawn < 0.03)
    days = learner.app.interval(cards.believed_stability, lot)
    due = np.minimum(cards.day + np.where(today, 1, days), learner.life_days)
    # The days with study that go by before a due card is done are geometrically distributed.
    days_late = np.log1p(-late) / np.log1p(-learner.promptness)
    slot = life.slot_from_day[due] + days_late.astype(np.int64)
    cards.later_day = put_off | ~today
    cards.slot = np.where(cards.later_day, slot, cards.slot)
    cards.last_day = cards.day
    alive = (cards.slot < len(life.day_of_slot)) & (cards.lapses < learner.leech_lapses)
    cards.keep(alive)
    again = again[alive]
    cards.day = life.day_of_slot[cards.slot]
    # From an answer to the same-day repetition: one minute or ten, give or take.
    soon = _FIRST_STEP if learner.steps[LEARNING] > 1 else _LATER_STEP
    wait = np.where(again & (cards.state == LEARNING), soon, _LATER_STEP)
    wait *= np.exp(0.4 * rng.standard_normal(len(wait)))
    wait = bounded(wait, _SHORTEST_STEP, _LONGEST_STEP)
    showing, cards.cohort_ability = life.showing(cards.slot, cards.cohort)
    cards.second = np.where(cards.later_day, showing, cards.answered + wait)


def _probability(odds: Any) -> Any:
    """Probability of some log-odds."""
    return 1 / (1 + np.exp(-odds))
