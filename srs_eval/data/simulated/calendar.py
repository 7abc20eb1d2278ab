"""The days a simulated user studies, how well they do on each, and when new cards come."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from srs_eval.data.simulated.learner import Learner
from srs_eval.nouns import BoolArray, FloatArray, IntArray

_SLOW_DAYS = 45.0
_DAYS_BETWEEN_HOLIDAYS, _HOLIDAY_DAYS = 150, 9
_NEW_CARDS_UNTIL = (0.6, 1.0)
_HOUR = 3600.0
_EARLIEST_START, _LATEST_START = 1 * _HOUR, 19 * _HOUR


@dataclass(frozen=True, slots=True)
class Calendar:
    """A user's days; a slot counts the days with study from 0.

    Attributes
    ----------
    day_of_slot : int64 [slots]
        Days with study, ascending.
    slot_from_day : int64 [days + 1]
        First slot on or after each day; `slots` where there is none.
    ability : float64 [days]
        What each day adds to the log-odds of recall.
    start : float64 [days]
        Seconds between the user's day change and the beginning of study.
    arrivals : float64 [slots]
        Share of the new cards that come up to and including each slot.
    """

    day_of_slot: IntArray
    slot_from_day: IntArray
    ability: FloatArray
    start: FloatArray
    arrivals: FloatArray


def draw_calendar(learner: Learner, rng: np.random.Generator) -> Calendar:
    """Draw the days of one person's life."""
    days = learner.life_days
    attended = (rng.random(days) < learner.attendance) & ~_holidays(days, rng)
    attended[0] = True
    day_of_slot = np.flatnonzero(attended).astype(np.int64)
    arrivals = np.exp(0.8 * rng.standard_normal(len(day_of_slot)))
    arrivals *= day_of_slot <= rng.uniform(*_NEW_CARDS_UNTIL) * days
    arrived = np.cumsum(arrivals)
    start = 12 * _HOUR + _HOUR * (3 * rng.standard_normal() + 1.5 * rng.standard_normal(days))
    return Calendar(
        day_of_slot=day_of_slot,
        slot_from_day=np.searchsorted(day_of_slot, np.arange(days + 1)),
        ability=_ability(learner, rng),
        start=np.clip(start, _EARLIEST_START, _LATEST_START),
        arrivals=arrived / arrived[-1],
    )


def _holidays(days: int, rng: np.random.Generator) -> BoolArray:
    """Mark stretches of days away from study."""
    breaks = days // _DAYS_BETWEEN_HOLIDAYS
    first = rng.integers(0, days, breaks)
    last = np.minimum(first + rng.geometric(1 / _HOLIDAY_DAYS, breaks), days)
    change = np.zeros(days + 1, np.int64)
    np.add.at(change, first, 1)
    np.add.at(change, last, -1)
    away: BoolArray = np.cumsum(change)[:days] > 0
    return away


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
