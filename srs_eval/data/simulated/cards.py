"""Cards on their way from one review to the next, all columns advancing together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from srs_eval.data.simulated.calendar import Calendar
from srs_eval.data.simulated.learner import Learner
from srs_eval.data.simulated.memory import after_forgetting, after_recall, after_step, bounded
from srs_eval.data.simulated.sessions import hashed_normal
from srs_eval.nouns import BoolArray, FloatArray, IntArray

NEW, LEARNING, REVIEW, RELEARNING = 0, 1, 2, 3
NEVER = -1

_AGAIN, _HARD, _EASY = 1, 2, 4
_FIRST_STEP, _LATER_STEP, _SHORTEST_STEP, _LONGEST_STEP = 60.0, 600.0, 20.0, 1500.0
_MOST_STEPS = 7
_PUT_OFF = 0.03
_ENCODING_NOISE = 0.1


@dataclass(slots=True)
class Cards:
    """Cards about to be reviewed for the k-th time; every column has one entry per card.

    As all are at their k-th review, either all of them are new or none is.
    """

    # Of the review to come, as in `Answers`
    card: IntArray
    cohort: IntArray  # Cards introduced in the same half of a day, numbered as in `Calendar`
    state: IntArray
    day: IntArray
    second: FloatArray
    # Day of the review before (`NEVER` if none), and second its answer was given
    last_day: IntArray
    answered: FloatArray
    # Same-day repetitions still to do and done, and how often it was forgotten
    steps_left: IntArray
    steps_today: IntArray
    lapses: IntArray
    # The truth: 1 to 10 and fixed, a multiplier of stability gains, what is added to the log time
    # of answers, and days (while new, a multiplier of the person's first stability)
    difficulty: FloatArray
    growth: FloatArray
    slowness: FloatArray
    stability: FloatArray
    # What the app believes
    believed_stability: FloatArray
    believed_difficulty: FloatArray

    def take(self, rows: BoolArray) -> Cards:
        """Keep some of the cards."""
        kept = np.flatnonzero(rows)
        return Cards(*[getattr(self, name)[kept] for name in Cards.__slots__])


def new_cards(
    begin: int, count: int, learner: Learner, calendar: Calendar, rng: np.random.Generator
) -> Cards:
    """Draw cards never seen before, and the days they come up."""
    slot = np.searchsorted(calendar.arrivals, rng.random(count), side="right")
    day = calendar.day_of_slot[slot]
    card = np.arange(begin, begin + count, dtype=np.int64)
    cohort = 2 * day + card % 2
    second = calendar.showing(day, cohort, learner, rng)
    nothing, zeros = np.zeros(count, np.int64), np.zeros(count)
    difficulty = np.clip(5 + learner.card_difficulty * rng.standard_normal(count), 1, 10)
    by_difficulty, by_card = learner.population.card_time
    slowness = by_card * hashed_normal(calendar.keys[2], card, cohort)
    slowness += by_difficulty * (difficulty - 5) / learner.card_difficulty
    return Cards(
        card=card,
        cohort=cohort,
        state=np.full(count, NEW, np.int64),
        day=day,
        second=second,
        last_day=np.full(count, NEVER, np.int64),
        answered=zeros,
        steps_left=nothing,
        steps_today=nothing,
        lapses=nothing,
        difficulty=difficulty,
        slowness=slowness,
        growth=np.exp(learner.card_growth * rng.standard_normal(count)),
        stability=np.exp(learner.card_stability * rng.standard_normal(count)),
        believed_stability=zeros,
        believed_difficulty=zeros,
    )


def learn(
    cards: Cards,
    rating: IntArray,
    remembered: FloatArray,
    learner: Learner,
    rng: np.random.Generator,
) -> None:
    """Move what the person knows, and what the app believes, past one answer."""
    if (cards.last_day == NEVER).all():
        cards.stability = bounded(cards.stability * learner.memory.first_stability[rating - 1])
        cards.believed_stability, cards.believed_difficulty = learner.app.first(rating)
        return
    elapsed_days = cards.day - cards.last_day
    rows = np.flatnonzero(elapsed_days > 0)
    noise = np.exp(_ENCODING_NOISE * rng.standard_normal(len(rows)))
    stability = after_step(cards.stability, rating, learner.population.step_effect)
    stability[rows] = noise * _after_later_day(cards, rating, remembered, rows, learner)
    cards.stability = bounded(stability)
    # The app goes by the first review of each day.
    believed, difficulty = cards.believed_stability.copy(), cards.believed_difficulty.copy()
    believed[rows], difficulty[rows] = learner.app.later(
        believed[rows], difficulty[rows], elapsed_days[rows], rating[rows]
    )
    cards.believed_stability, cards.believed_difficulty = believed, difficulty


def _after_later_day(
    cards: Cards, rating: IntArray, remembered: FloatArray, rows: IntArray, learner: Learner
) -> FloatArray:
    """Stability of some cards after an answer on a later day."""
    before, difficulty = cards.stability[rows], cards.difficulty[rows]
    share, given = remembered[rows], rating[rows]
    memory = learner.memory
    recalled = after_recall(memory, before, difficulty, share, given, cards.growth[rows])
    return np.where(given > _AGAIN, recalled, after_forgetting(memory, before, difficulty, share))


def next_reviews(
    cards: Cards,
    rating: IntArray,
    duration_ms: FloatArray,
    learner: Learner,
    calendar: Calendar,
    rng: np.random.Generator,
) -> Cards:
    """Plan the next review of each card, later today or on a later day; drop the finished.

    A card is finished when it is given up as a leech, or when life ends before it is due.
    """
    later_day = (cards.last_day == NEVER) | (cards.day > cards.last_day)
    cards.lapses = cards.lapses + ((rating == _AGAIN) & (cards.state == REVIEW))
    cards.answered = cards.second + duration_ms / 1000
    cards.last_day = cards.day
    cards.steps_today = np.where(later_day, 0, cards.steps_today + 1)
    _count_steps(cards, rating, learner)
    today = (cards.steps_left > 0) & (cards.steps_today < _MOST_STEPS)
    put_off = today & (rng.random(len(rating)) < _PUT_OFF)
    cards.state = np.where(cards.steps_left > 0, cards.state, REVIEW)
    interval = learner.app.interval(cards.believed_stability, rng.random(len(rating)))
    due = np.minimum(cards.day + np.where(put_off, 1, interval), learner.life_days)
    slot = calendar.slot_from_day[due] + _days_late(len(due), learner.promptness, rng)
    today &= ~put_off
    alive = today | (slot < len(calendar.day_of_slot))
    alive &= cards.lapses < learner.leech_lapses
    cards, rating, today, slot = cards.take(alive), rating[alive], today[alive], slot[alive]
    later = calendar.day_of_slot[np.minimum(slot, len(calendar.day_of_slot) - 1)]
    cards.day = np.where(today, cards.last_day, later)
    wait = _step_seconds(cards, rating, learner, rng)
    showing = calendar.showing(cards.day, cards.cohort, learner, rng)
    cards.second = np.where(today, cards.answered + wait, showing)
    return cards


def _count_steps(cards: Cards, rating: IntArray, learner: Learner) -> None:
    """Set how many repetitions on the same day are left, and the state they are done in."""
    lapsed = (cards.state == REVIEW) & (rating == _AGAIN)
    state = np.where(cards.state == NEW, LEARNING, cards.state)
    state = np.where(lapsed, RELEARNING, state)
    every = np.where(state == LEARNING, learner.learning_steps, learner.relearning_steps)
    left = np.where(cards.state == NEW, every, cards.steps_left)
    passed = np.where(rating == _EASY, 0, left - (rating != _HARD))
    left = np.where(rating == _AGAIN, every, passed)
    cards.state = state
    cards.steps_left = np.where(state == REVIEW, 0, np.maximum(left, 0))


def _step_seconds(
    cards: Cards, rating: IntArray, learner: Learner, rng: np.random.Generator
) -> FloatArray:
    """Wait from an answer to the same-day repetition: one minute or ten, give or take."""
    soon = (rating == _AGAIN) & (cards.state == LEARNING) & (learner.learning_steps > 1)
    wait = np.where(soon, _FIRST_STEP, _LATER_STEP) * np.exp(0.4 * rng.standard_normal(len(rating)))
    return wait.clip(_SHORTEST_STEP, _LONGEST_STEP)


def _days_late(count: int, promptness: float, rng: np.random.Generator) -> IntArray:
    """Days with study that go by before a due card is done, geometrically distributed."""
    if promptness >= 1:
        return np.zeros(count, np.int64)
    late = np.log1p(-rng.random(count)) / np.log1p(-promptness)
    whole: IntArray = np.floor(late).astype(np.int64)
    return whole
