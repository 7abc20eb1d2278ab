"""The days a simulated user studies, how well they do on each, and when new cards come.

Effects of a session, and of a cohort on a day, are drawn or hashed beforehand, then looked up.
Given these effects cards are independent, so they can be simulated one after another.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from srs_eval.data.simulated.learner import Learner
from srs_eval.nouns import BoolArray, FloatArray, IntArray

_SLOW_DAYS = 45.0
_NEW_CARDS_UNTIL = (0.6, 1.0)
_HOUR = 3600.0
_DAY = 24 * _HOUR
_EARLIEST_START, _LATEST_START = 1 * _HOUR, 19 * _HOUR
_LONGEST_SESSION, _SECOND_SITTING_AFTER, _ALL_STEPS = 2 * _HOUR, 3 * _HOUR, 3.5 * _HOUR
_REVIEW_SECONDS = 20.0
# Breaks a year, median and spread of their log days, and the longest as a share of life
_BREAKS, _BREAK_DAYS, _BREAK_SPREAD, _LONGEST_BREAK = 6, 18, 1.3, 0.25
_BURST = 0.9  # Spread of the log number of new cards, over days
# Spreads of a cohort's log-odds on a day, and of log time from day to day and within a session
_COHORT, _DAILY_TIME, _SESSION_TIME = 0.5, 0.12, 0.42
# Rows of a log for each review on a later day.
_ROWS_PER_LATER_REVIEW = 1.4
# Correlation length of the effect of a session on recall and on time, in reviews.
_RECALL_LENGTH, _TIME_LENGTH = 3.0, 16.0
_FEWEST_CELLS, _MOST_CELLS = 8, 1000
_DECK_DAYS, _DECK_IN_USE = 20.0, 0.85
# Share of reviews made deck by deck, and of those beside their cohort within the deck
_DECK_ORDER, _COHORT_ORDER = 0.97, 0.6
# How near to each other the cards of a cohort are shown, as a share of the session.
_COHORT_WIDTH = 0.07

# Odd numbers that mix bits
_FIRST, _SECOND, _THIRD = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
)

Keys = np.uint64 | NDArray[np.uint64]


class Calendar:
    """The days of one person's life; a slot counts those with study from 0.

    Cards introduced together, in the first or second half of a day, are a cohort: those of day
    d have the numbers 2 d and 2 d + 1.
    """

    def __init__(self, learner: Learner, rng: np.random.Generator) -> None:
        days = learner.life_days
        # [slots]: Days with study, ascending
        self.day_of_slot = np.flatnonzero(_study_days(learner, rng)).astype(np.int64)
        slots = len(self.day_of_slot)
        # [days + 1]: First slot on or after each day; `slots` where there is none
        self.slot_from_day = np.searchsorted(self.day_of_slot, np.arange(days + 1))
        new = np.exp(_BURST * rng.standard_normal(slots))
        new *= self.day_of_slot <= rng.uniform(*_NEW_CARDS_UNTIL) * days
        arrived = np.cumsum(new)
        # [slots]: Share of the new cards that come up to and including each slot
        self.arrivals = arrived / arrived[-1]
        start = 12 * _HOUR + _HOUR * (3 * rng.standard_normal() + 1.5 * rng.standard_normal(days))
        ability = _ability(learner, rng)[self.day_of_slot, np.newaxis]
        pause = _SECOND_SITTING_AFTER * (rng.random(days) < learner.sitting_share)
        # A cell for each usual review of a session.
        usual = learner.later_reviews * _ROWS_PER_LATER_REVIEW / slots
        cells = int(np.clip(usual, _FEWEST_CELLS, _MOST_CELLS))
        # Seconds of study on each day without the pause
        self.session = min(cells * _REVIEW_SECONDS, _LONGEST_SESSION)
        latest = np.minimum(_LATEST_START, _DAY - self.session - pause - _ALL_STEPS)
        # [slots]: Second of the day change, seconds from there to the beginning of study, and
        # seconds between the two sittings of a day, 0 if there is one
        self.midnight = self.day_of_slot * _DAY
        self.start = np.clip(start, _EARLIEST_START, latest)[self.day_of_slot]
        self.pause = pause[self.day_of_slot]
        # [cohorts]
        # [slots, decks]: The part of a session in which each deck is studied, as shares of it
        self.deck_of_cohort, self.deck_begins, self.deck_width = _decks(
            learner.decks, new, self.day_of_slot, days, rng
        )
        log_time = _DAILY_TIME * rng.standard_normal((slots, 1))
        recall_walks, time_walks = (
            session_walks(slots, cells, length, rng) for length in (_RECALL_LENGTH, _TIME_LENGTH)
        )
        # [slots, cells]: What each moment of a session adds to the log-odds of recall, and to log
        # time
        self.ability = ability + learner.session_ability * recall_walks
        self.log_time = log_time + _SESSION_TIME * time_walks
        # [3]: Of hashed effects: of cohorts on recall, of cohorts on the order, of cards on time
        self.keys = rng.integers(0, 2**64, 3, dtype=np.uint64)

    def moment(self, slot: IntArray, second: FloatArray) -> IntArray:
        """Flat index into `ability` and `log_time` of the moments in which questions are shown."""
        cells = self.ability.shape[1]
        since_start = second - self.midnight[slot] - self.start[slot]
        cell = (since_start * (cells / self.session)).astype(np.int64) % cells
        index: IntArray = slot * cells + cell
        return index

    def showing(
        self, slot: IntArray, cohort: IntArray, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Return the second at which a question comes up, somewhere in the study of its day.

        Also returns what its cohort adds to the log-odds of recall on that day. Most questions come
        in the part of their deck, and many of these beside their cohort.
        """
        of_recall, near = hashed_uniform(self.keys[:2, np.newaxis], cohort, self.day_of_slot[slot])
        place, drawn = rng.random((2, len(slot)))
        near = near + _COHORT_WIDTH * (place - near)
        within = np.where(drawn < _COHORT_ORDER, near, place)
        part = slot * self.deck_width.shape[1] + self.deck_of_cohort[cohort]
        by_deck = self.deck_begins.take(part) + self.deck_width.take(part) * within
        place = np.where(drawn < _DECK_ORDER, by_deck, place)
        after_start = self.session * place + self.pause[slot] * (place > 0.5)
        second = self.midnight[slot] + self.start[slot] + after_start
        return second, _COHORT * ndtri(of_recall)


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
    count = rng.poisson(_BREAKS * days / 365)
    first = rng.integers(0, days, count)
    drawn_length = _BREAK_DAYS * np.exp(_BREAK_SPREAD * rng.standard_normal(count))
    length = np.minimum(drawn_length, days * _LONGEST_BREAK).astype(np.int64)
    change = np.zeros(days + 1, np.int64)
    np.add.at(change, first, 1)
    np.add.at(change, np.minimum(first + length, days), -1)
    attended &= np.cumsum(change)[:days] == 0
    attended[0] = True
    return attended


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


def session_walks(days: int, cells: int, length: float, rng: np.random.Generator) -> FloatArray:
    """Draw an autoregressive process of order 1 for each day, independent from day to day.

    [days, cells], standard normal, with correlation ``exp(-k / length)`` between cells k apart.
    """
    keep = np.exp(-1 / length)
    walks = rng.standard_normal((cells, days))
    walks[1:] *= np.sqrt(1 - keep**2)
    for cell in range(1, cells):
        walks[cell] += keep * walks[cell - 1]
    return np.ascontiguousarray(walks.T)


def hashed_uniform(key: Keys, one: IntArray, other: IntArray) -> FloatArray:
    """Return random numbers between 0 and 1 that depend on keys and on pairs of integers.

    Bits are mixed by a shorter form of SplitMix64: Steele, Lea & Flood (2014), Fast splittable
    pseudorandom number generators.

    >>> hashed_uniform(np.uint64(7), np.array([1, 2, 1]), np.array([5, 5, 5])).round(3).tolist()
    [0.797, 0.161, 0.797]
    """
    mixed = one.astype(np.uint64) * _SECOND + other.astype(np.uint64) * _FIRST + key
    mixed ^= mixed >> np.uint64(32)
    mixed *= _THIRD
    uniform: FloatArray = ((mixed >> np.uint64(11)) + 0.5) * 2.0**-53
    return uniform
