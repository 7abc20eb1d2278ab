"""The days a simulated user studies, how well they do on each, and when new cards come.

Effects of a session, and of a cohort on a day, are drawn or hashed beforehand, then looked up.
Given these effects cards are independent, so they can be simulated one after another.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from srs_eval.data.reviews import BoolArray, FloatArray, IntArray
from srs_eval.data.simulated.people import Learner

_HOUR = 3600.0
_DAY = 24 * _HOUR
_SECOND_SITTING_AFTER, _ALL_STEPS = 3 * _HOUR, 3.5 * _HOUR

# Odd numbers that mix bits
_FIRST = np.uint64(0x9E3779B97F4A7C15)
_SECOND = np.uint64(0xBF58476D1CE4E5B9)
_THIRD = np.uint64(0x94D049BB133111EB)


class Life:
    """One person, the days of their life, and the random numbers that decide what happens on them.

    A slot counts the days with study from 0. Cards introduced together, in the first or second half
    of a day, are a cohort: those of day d have the numbers 2 d and 2 d + 1.
    """

    def __init__(self, learner: Learner, rng: np.random.Generator) -> None:
        self.learner, self.rng = learner, rng
        days = learner.life_days
        # [slots]: Days with study, ascending
        self.day_of_slot = np.flatnonzero(_study_days(learner, rng)).astype(np.int64)
        slots = len(self.day_of_slot)
        # [days + 1]: First slot on or after each day; `slots` where there is none
        self.slot_from_day = np.searchsorted(self.day_of_slot, np.arange(days + 1))
        new = np.exp(0.9 * rng.standard_normal(slots))
        new *= self.day_of_slot <= rng.uniform(0.6, 1.0) * days
        arrived = np.cumsum(new)
        # [slots]: Share of the new cards that come up to and including each slot
        self.arrivals = arrived / arrived[-1]
        start = 12 * _HOUR + _HOUR * (3 * rng.standard_normal() + 1.5 * rng.standard_normal(days))
        ability = _ability(learner, rng)[self.day_of_slot, np.newaxis]
        pause = _SECOND_SITTING_AFTER * (rng.random(days) < learner.sitting_share)
        # A cell for each usual review of a session, of 20 seconds; a log has 1.4 rows for each
        # review on a later day.
        cells = int(np.clip(learner.later_reviews * 1.4 / slots, 8, 1000))
        # Seconds of study on each day without the pause
        self.session = min(cells * 20.0, 2 * _HOUR)
        latest = np.minimum(19 * _HOUR, _DAY - self.session - pause - _ALL_STEPS)
        # [slots]: Second of the day change, seconds from there to the beginning of study, and
        # seconds between the two sittings of a day, 0 if there is one
        self.midnight = self.day_of_slot * _DAY
        self.start = np.clip(start, _HOUR, latest)[self.day_of_slot]
        self.pause = pause[self.day_of_slot]
        # [cohorts]
        # [slots, decks]: The part of a session in which each deck is studied, as shares of it
        self.deck_of_cohort, self.deck_begins, self.deck_width = _decks(
            learner.decks, new, self.day_of_slot, days, rng
        )
        log_time = 0.12 * rng.standard_normal((slots, 1))
        # Effects of a session last for some 3 reviews on recall, and for 16 on time.
        recall_walks, time_walks = (session_walks(slots, cells, length, rng) for length in (3, 16))
        # [slots, cells]: What each moment of a session adds to the log-odds of recall, and to log
        # time
        self.ability = ability + learner.session_ability * recall_walks
        self.log_time = log_time + 0.42 * time_walks
        # [3]: Of hashed effects: of cohorts on recall, of cohorts on the order, of cards on time
        self.keys = rng.integers(0, 2**64, 3, dtype=np.uint64)

    def moment(self, slot: IntArray, second: FloatArray) -> IntArray:
        """Flat index into `ability` and `log_time` of the moments in which questions are shown."""
        cells = self.ability.shape[1]
        since_start = second - self.midnight[slot] - self.start[slot]
        cell = (since_start * (cells / self.session)).astype(np.int64) % cells
        index: IntArray = slot * cells + cell
        return index

    def showing(self, slot: IntArray, cohort: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the second at which a question comes up, somewhere in the study of its day.

        Also returns what its cohort adds to the log-odds of recall on that day. Most questions come
        in the part of their deck, and many of these beside their cohort.
        """
        of_recall, near = hashed_uniform(self.keys[:2, np.newaxis], cohort, self.day_of_slot[slot])
        place, drawn = self.rng.random((2, len(slot)))
        within = np.where(drawn < 0.6, near + 0.07 * (place - near), place)
        part = slot * self.deck_width.shape[1] + self.deck_of_cohort[cohort]
        by_deck = self.deck_begins.take(part) + self.deck_width.take(part) * within
        place = np.where(drawn < 0.97, by_deck, place)
        after_start = self.session * place + self.pause[slot] * (place > 0.5)
        second = self.midnight[slot] + self.start[slot] + after_start
        return second, 0.5 * ndtri(of_recall)


def _study_days(learner: Learner, rng: np.random.Generator) -> BoolArray:
    """Mark the days with study: a chain of two states, interrupted by breaks, some 6 a year."""
    days = learner.life_days
    after_study, after_none = learner.study_chances
    studied = accumulate(
        rng.random(days).tolist(),
        lambda before, u: u < (after_study if before else after_none),
        initial=True,
    )
    attended = np.array(list(studied)[1:])
    count = rng.poisson(6 * days / 365)
    first = rng.integers(0, days, count)
    length = np.minimum(18 * np.exp(1.3 * rng.standard_normal(count)), 0.25 * days)
    for begin, end in zip(first, first + length.astype(np.int64), strict=True):
        attended[begin:end] = False
    attended[0] = True
    return attended


def _decks(
    decks: int, new: FloatArray, day_of_slot: IntArray, days: int, rng: np.random.Generator
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Draw the deck of each cohort; a deck's part of a session follows from its cards so far.

    New cards mostly come from one deck for some 20 days. Returns `deck_of_cohort`, `deck_begins`
    and `deck_width` of `Life`.
    """
    change = np.cumsum(rng.random(days) < 1 / 20)
    in_use = rng.integers(0, decks, change[-1] + 1)[change]
    drawn = rng.integers(0, decks, 2 * days)
    deck = np.where(rng.random(2 * days) < 0.85, np.repeat(in_use, 2), drawn)
    cards = np.full((len(day_of_slot), decks), 1e-9)
    for half in (0, 1):
        cards[np.arange(len(day_of_slot)), deck[2 * day_of_slot + half]] += new
    width = np.cumsum(cards, axis=0)
    width /= width.sum(axis=1, keepdims=True)
    return deck, np.cumsum(width, axis=1) - width, width


def _ability(learner: Learner, rng: np.random.Generator) -> FloatArray:
    """Log-odds each day adds: the level, a slow wander, the form of the day, and a trend."""
    days = learner.life_days
    keep = float(np.exp(-1 / 45))
    shocks = rng.standard_normal(days) * np.sqrt(1 - keep**2)
    shocks[0] = rng.standard_normal()
    wander = np.array(list(accumulate(shocks.tolist(), lambda kept, shock: keep * kept + shock)))
    trend = learner.trend * (np.arange(days) / days - 0.5)
    daily = learner.daily_ability * rng.standard_normal(days)
    return learner.level + learner.slow_ability * wander + daily + trend


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


def hashed_uniform(
    key: np.uint64 | NDArray[np.uint64], one: IntArray, other: IntArray
) -> FloatArray:
    """Return random numbers between 0 and 1 that depend on keys and on pairs of integers.

    Bits are mixed by a shorter form of SplitMix64: Steele, Lea & Flood (2014), Fast splittable
    pseudorandom number generators.

    >>> hashed_uniform(np.uint64(7), np.array([1, 2, 1]), np.array([5, 5, 5])).round(3).tolist()
    [0.797, 0.161, 0.797]
    """
    mixed = one.astype(np.uint64) * _SECOND + other.astype(np.uint64) * _FIRST + key
    mixed ^= mixed >> np.uint64(32)
    mixed *= _THIRD
    return ((mixed >> np.uint64(11)) + 0.5) * 2.0**-53
