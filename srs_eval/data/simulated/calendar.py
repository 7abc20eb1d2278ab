"""The days a simulated user studies, how well they do on each, and when new cards come."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from srs_eval.data.simulated.learner import Learner
from srs_eval.data.simulated.population import Population
from srs_eval.data.simulated.sessions import hashed_uniform, session_walks
from srs_eval.nouns import BoolArray, FloatArray, IntArray

_SLOW_DAYS = 45.0
_NEW_CARDS_UNTIL = (0.6, 1.0)
_HOUR = 3600.0
_DAY = 24 * _HOUR
_EARLIEST_START, _LATEST_START = 1 * _HOUR, 19 * _HOUR
_LONGEST_SESSION, _SECOND_SITTING_AFTER, _ALL_STEPS = 2 * _HOUR, 3 * _HOUR, 3.5 * _HOUR
# Rows of a log for each review on a later day.
_ROWS_PER_LATER_REVIEW = 1.6
# Correlation length of the effect of a session on recall and on time, in reviews.
_RECALL_LENGTH, _TIME_LENGTH = 3.0, 16.0
_FEWEST_CELLS, _MOST_CELLS = 8, 1000
_DECK_DAYS, _DECK_IN_USE = 20.0, 0.85
# How near to each other the cards of a cohort are shown, as a share of the session.
_COHORT_WIDTH = 0.07


@dataclass(frozen=True, slots=True)
class Calendar:
    """A user's days; a slot counts the days with study from 0.

    Cards introduced together, in the first or second half of a day, are a cohort: those of day
    d have the numbers 2 d and 2 d + 1.
    """

    day_of_slot: IntArray  # [slots]: Days with study, ascending
    # [days + 1]: First slot on or after each day; `slots` where there is none
    slot_from_day: IntArray
    # [slots, cells]: What each moment of a session adds to the log-odds of recall, and to log time
    ability: FloatArray
    log_time: FloatArray
    # [slots]: Second of the day change, and seconds from there to the beginning of study
    midnight: FloatArray
    start: FloatArray
    session: float  # Seconds of study on each day without the pause
    pause: FloatArray  # [slots]: Seconds between the two sittings of a day, 0 if there is one
    arrivals: FloatArray  # [slots]: Share of the new cards that come up to and including each slot
    deck_of_cohort: IntArray  # [cohorts]
    # [slots, decks]: The part of a session in which each deck is studied, as shares of the session
    deck_begins: FloatArray
    deck_width: FloatArray
    # [3]: Of hashed effects: of cohorts on recall, of cohorts on the order, of cards on time
    keys: NDArray[np.uint64]

    def moment(self, slot: IntArray, second: FloatArray) -> IntArray:
        """Flat index into `ability` and `log_time` of the moments in which questions are shown."""
        cells = self.ability.shape[1]
        since_start = second - self.midnight[slot] - self.start[slot]
        cell = (since_start * (cells / self.session)).astype(np.int64) % cells
        index: IntArray = slot * cells + cell
        return index

    def showing(
        self, slot: IntArray, cohort: IntArray, learner: Learner, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Return the second at which a question comes up, somewhere in the study of its day.

        Also returns what its cohort adds to the log-odds of recall on that day.
        """
        of_recall, near = hashed_uniform(self.keys[:2, np.newaxis], cohort, self.day_of_slot[slot])
        place: FloatArray = rng.random(len(slot))
        if learner.population.deck_order:
            drawn = rng.random(len(slot))
            place = self._ordered(place, near, drawn, slot, cohort, learner.population)
        after_start = self.session * place + self.pause[slot] * (place > 0.5)
        second = self.midnight[slot] + self.start[slot] + after_start
        return second, learner.population.cohort * ndtri(of_recall)

    def _ordered(
        self,
        place: FloatArray,
        near: FloatArray,
        drawn: FloatArray,
        slot: IntArray,
        cohort: IntArray,
        population: Population,
    ) -> FloatArray:
        """Move most questions to the part of their deck, and many beside their cohort."""
        near = near + _COHORT_WIDTH * (place - near)
        within = np.where(drawn < population.cohort_order, near, place)
        part = slot * self.deck_width.shape[1] + self.deck_of_cohort[cohort]
        by_deck = self.deck_begins.take(part) + self.deck_width.take(part) * within
        return np.where(drawn < population.deck_order, by_deck, place)


def draw_calendar(learner: Learner, rng: np.random.Generator) -> Calendar:
    """Draw the days of one person's life."""
    days, population = learner.life_days, learner.population
    attended = _study_days(learner, rng)
    day_of_slot = np.flatnonzero(attended).astype(np.int64)
    new = np.exp(population.burst * rng.standard_normal(len(day_of_slot)))
    new *= day_of_slot <= rng.uniform(*_NEW_CARDS_UNTIL) * days
    arrived = np.cumsum(new)
    start = 12 * _HOUR + _HOUR * (3 * rng.standard_normal() + 1.5 * rng.standard_normal(days))
    ability = _ability(learner, rng)[day_of_slot, np.newaxis]
    # What version 1 does not have is drawn apart, so that its numbers stay as they were.
    (other,) = rng.spawn(1)
    pause = _SECOND_SITTING_AFTER * (other.random(days) < learner.sitting_share)
    cells, session = _session(learner, len(day_of_slot))
    latest = np.minimum(_LATEST_START, _DAY - session - pause - _ALL_STEPS)
    decks, begins, width = _decks(learner.decks, new, day_of_slot, days, other)
    log_time = population.daily_time * other.standard_normal((len(day_of_slot), 1))
    recall_walks, time_walks = (
        session_walks(len(day_of_slot), cells, length, other)
        for length in (_RECALL_LENGTH, _TIME_LENGTH)
    )
    return Calendar(
        day_of_slot=day_of_slot,
        slot_from_day=np.searchsorted(day_of_slot, np.arange(days + 1)),
        ability=ability + learner.session_ability * recall_walks,
        log_time=log_time + population.session_time * time_walks,
        midnight=day_of_slot * _DAY,
        start=np.clip(start, _EARLIEST_START, latest)[day_of_slot],
        session=session,
        pause=pause[day_of_slot],
        arrivals=arrived / arrived[-1],
        deck_of_cohort=decks,
        deck_begins=begins,
        deck_width=width,
        keys=other.integers(0, 2**64, 3, dtype=np.uint64),
    )


def _study_days(learner: Learner, rng: np.random.Generator) -> BoolArray:
    """Mark the days with study: a chain of two states, interrupted by breaks."""
    days = learner.life_days
    after_study, after_none = learner.study_chances
    drawn = rng.random(days)
    studied = accumulate(
        drawn.tolist(),
        lambda before, u: u < (after_study if before else after_none),
        initial=True,
    )
    attended = np.array(list(studied)[1:])
    first, length = learner.population.breaks(days, rng)
    change = np.zeros(days + 1, np.int64)
    np.add.at(change, first, 1)
    np.add.at(change, np.minimum(first + length, days), -1)
    attended &= np.cumsum(change)[:days] == 0
    attended[0] = True
    return attended


def _session(learner: Learner, sessions: int) -> tuple[int, float]:
    """Return the number of cells of a session, one for each usual review, and its seconds."""
    each = learner.population.review_seconds
    if each is None:
        return 1, _HOUR
    usual = learner.later_reviews * _ROWS_PER_LATER_REVIEW / sessions
    cells = int(np.clip(usual, _FEWEST_CELLS, _MOST_CELLS))
    return cells, min(cells * each, _LONGEST_SESSION)


def _decks(
    decks: int, new: FloatArray, day_of_slot: IntArray, days: int, rng: np.random.Generator
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Draw the deck of each cohort; a deck's part of a session follows from its cards so far.

    Returns `deck_of_cohort`, `deck_begins` and `deck_width` of `Calendar`.
    """
    change = np.cumsum(rng.random(days) < 1 / _DECK_DAYS)
    in_use = rng.integers(0, decks, change[-1] + 1)[change]
    drawn = rng.integers(0, decks, 2 * days)
    deck = np.where(rng.random(2 * days) < _DECK_IN_USE, np.repeat(in_use, 2), drawn)
    cards = np.full((len(day_of_slot), decks), 1e-9)
    for half in (0, 1):
        cards[np.arange(len(day_of_slot)), deck[2 * day_of_slot + half]] += new
    width = np.cumsum(cards, axis=0)
    width /= width.sum(axis=1, keepdims=True)
    return deck, np.cumsum(width, axis=1) - width, width


def _ability(learner: Learner, rng: np.random.Generator) -> FloatArray:
    """Log-odds each day adds: the level, a slow wander, the form of the day, and a trend."""
    days = learner.life_days
    keep = float(np.exp(-1 / _SLOW_DAYS))
    shocks = rng.standard_normal(days) * np.sqrt(1 - keep**2)
    shocks[0] = rng.standard_normal()
    wander = np.array(list(accumulate(shocks.tolist(), lambda kept, shock: keep * kept + shock)))
    trend = learner.trend * (np.arange(days) / days - 0.5)
    daily = learner.daily_ability * rng.standard_normal(days)
    ability: FloatArray = learner.level + learner.slow_ability * wander + daily + trend
    return ability
