"""Simulated reviews whose intervals are drawn by lot: the critics' case, and whole collections."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.special import expit

from srs_eval.data.anki.fuzz import fuzz_factor
from srs_eval.draws.lots import Lots
from srs_eval.draws.rules import Before, Rule, drawn, lots_of
from srs_eval.draws.trials import Predicted, Trials
from srs_eval.nouns import BoolArray, FloatArray, IntArray

_EIGHT_DAYS = np.log(8)
_DAY_MS, _START_MS = 86_400_000, 1_577_836_800_000  # 2020-01-01
_SETTINGS = {"schedVer": 2, "rollover": 4, "localOffset": 0}
GIVES_UP = "gives up hard cards, the more so the longer their interval"
WEEKENDS = "remembers half as long at weekends"
SHOWN = "presses Hard where the interval shown for Good is long"
HABITS = (GIVES_UP, WEEKENDS, SHOWN)
_SHAPE = 0.7  # exponent of forgetting curves
_STEPS = 12  # of Newton's method


@dataclass(frozen=True)
class Critics:
    """Reviews of cards whose stability the app knows, and models only in part."""

    trials: Trials
    seen: FloatArray  # What models see of the logarithm of stability
    stability: FloatArray  # Days until recall has fallen to 90 %


def critics_case(rng: np.random.Generator, n: int) -> Critics:
    """Simulate an app that hits 90 % with every card, whatever its stability.

    Intervals are as long as cards are stable, so that recall hardly depends on them; and what is
    stable comes later still.
    """
    seen, hidden = rng.normal(0, 0.5, n), rng.normal(0, 0.8, n)
    stability = np.exp(_EIGHT_DAYS + seen + hidden)
    ideal = np.exp(_EIGHT_DAYS + seen + hidden + rng.normal(0, 0.15, n))
    before = _plain(np.maximum(ideal, 3).astype(np.int64))
    lots = lots_of(Rule.V1, before)
    days = sampled(lots, rng)
    late = np.where(rng.random(n) < 0.3, rng.geometric(0.3, n) * (1 + (hidden > 0)), 0)
    elapsed = (days + late).astype(float)
    recalled = rng.random(n) < 0.9 ** (elapsed / stability)
    number = np.arange(n)
    trials = Trials(
        user=np.zeros(n, np.int64),
        card=number,
        recalled=recalled.astype(float),
        elapsed=elapsed,
        drawn=days,
        lots=lots,
        rule=np.full(n, "v1"),
        row=number,
        later_recalled=np.full(n, np.nan),
    )
    return Critics(trials, seen, stability)


def _plain(ideal: IntArray) -> Before:
    """Return answers of which version 1 makes just these intervals, before the draw."""
    ones = np.ones(len(ideal))
    day = np.ones(len(ideal), np.int64)
    return Before(3 * day, day, 0 * day, ideal.astype(float), ones, 1.2 * ones, ones, 36500 * ones)


def sampled(lots: Lots, rng: np.random.Generator) -> IntArray:
    """Draw an interval from the lots of each answer."""
    total = np.cumsum(lots.probability)
    place = np.searchsorted(total, np.arange(len(lots)) + rng.random(len(lots)), side="right")
    return lots.days[np.clip(place, lots.begins[:-1], lots.begins[1:] - 1)]


def associational(train: Critics, test: Critics) -> Predicted:
    """Predict by a flexible regression on the days that went by, as benchmarks reward."""
    weights = np.zeros(6)
    x, y = _features(train.seen, train.trials.elapsed), train.trials.recalled
    for _ in range(_STEPS):
        p = expit(x @ weights)
        curvature = (x * (p * (1 - p))[:, None]).T @ x + 1e-6 * np.eye(6)
        weights += np.linalg.solve(curvature, x.T @ (y - p))
    return _at_all(test, lambda seen, _, days: expit(_features(seen, days) @ weights))


def _features(seen: FloatArray, days: FloatArray) -> FloatArray:
    t = np.log(days)
    return np.column_stack([np.ones(len(t)), t, seen, t * t, seen * t, seen * seen])


def honest(test: Critics) -> Predicted:
    """Predict by the right kind of curve, its stability taken from what is seen."""
    return _at_all(test, lambda seen, _, days: 0.9 ** (days / np.exp(_EIGHT_DAYS + seen + 0.3)))


def truth(test: Critics) -> Predicted:
    """Predict by the true curve."""
    return _at_all(test, lambda _, stability, days: 0.9 ** (days / stability))


def _at_all(
    test: Critics, curve: Callable[[FloatArray, FloatArray, FloatArray], FloatArray]
) -> Predicted:
    """Predict at the days that went by, those drawn, and those that could have been."""
    trials, seen, stability = test.trials, test.seen, test.stability
    answer, days = trials.lots.answer, trials.lots.days.astype(float)
    return Predicted(
        actual=curve(seen, stability, trials.elapsed),
        drawn=curve(seen, stability, trials.drawn.astype(float)),
        mean=trials.lots.mean(curve(seen[answer], stability[answer], days)),
        later=np.full(len(trials), np.nan),
    )


@dataclass
class _Cards:
    """Cards on their way through a simulated collection."""

    number: IntArray
    day: IntArray  # Of the last review
    interval: IntArray  # Days that it gave
    ease: IntArray  # Per mille
    stability: FloatArray
    count: IntArray  # Answers so far

    def take(self, rows: BoolArray) -> _Cards:
        """Keep some of the cards."""
        return _Cards(*[getattr(self, name)[rows] for name in self.__dataclass_fields__])


def write_collection(
    path: Path,
    rng: np.random.Generator,
    *,
    cards: int,
    rule: Rule,
    habit: str = "",
    days: int = 1500,
) -> FloatArray:
    """Write the collection of a simulated user; return the true recall at each of its answers.

    Intervals are drawn by the rule. Cards that are hard to remember get other ratings, and thereby
    other intervals, so that recall and intervals have common causes. `habit` may be one of
    `HABITS`, which might deceive the lottery.
    """
    state = _Cards(
        number=_START_MS - 10**9 + 1000 * np.arange(cards),
        day=rng.integers(0, days // 2, cards),
        interval=np.ones(cards, np.int64),
        ease=np.full(cards, 2500),
        stability=np.exp(rng.normal(1.5, 0.8, cards)),
        count=np.ones(cards, np.int64),
    )
    table = [_rows(state, rng, 3, state.interval, kind=0, recall=1.0)]
    while len(state.number):
        late = np.where(rng.random(len(state.day)) < 0.2, rng.geometric(0.4, len(state.day)), 0)
        kept = state.day + state.interval + late < days
        state, late = state.take(kept), late[kept]
        if len(late):
            answers, stays = _answered(state, late, rng, rule, habit)
            table += answers
            state = state.take(stays)
    rows = np.concatenate(table)
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    rows[:, 0] = np.maximum.accumulate(rows[:, 0] - np.arange(len(rows))) + np.arange(len(rows))
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("create table col (id, crt, conf)")
        stored = (1, _START_MS // 1000, json.dumps(_SETTINGS))
        database.execute("insert into col values (?, ?, ?)", stored)
        columns = "id integer primary key, cid, ease, ivl, factor, time, type"
        database.execute(f"create table revlog ({columns})")
        insert = "insert into revlog values (?, ?, ?, ?, ?, ?, ?)"
        database.executemany(insert, rows[:, :-1].astype(np.int64).tolist())
    return rows[:, -1]


def _answered(
    state: _Cards, late: IntArray, rng: np.random.Generator, rule: Rule, habit: str
) -> tuple[list[FloatArray], BoolArray]:
    """Answer every card once, and move it on; return rows of the table, and which cards stay."""
    elapsed = state.interval + late
    at_weekend = (state.day + elapsed) % 7 > 4
    rested = np.where(at_weekend, 0.5, 1.0) if habit == WEEKENDS else np.ones(len(late))
    recall = (1 + (0.9 ** (-1 / _SHAPE) - 1) * elapsed / (state.stability * rested)) ** -_SHAPE
    recalled, chosen = rng.random(len(late)) < recall, rng.random(len(late))
    rating = np.where(chosen < 0.05 + 0.3 * (1 - recall), 2, np.where(chosen > 0.85, 4, 3))
    ones = np.ones(len(late))
    before = Before(
        rating, state.interval, late, state.ease / 1000, ones, 1.2 * ones, 1.3 * ones, 36500 * ones
    )
    lots = lots_of(rule, before)
    draw = fuzz_factor(state.number, state.count)
    days = drawn(rule, before, draw) if rule.is_seeded else sampled(lots, rng)
    longer = np.log(days) - lots.mean_log
    if habit == SHOWN:
        shorter = (rating == 3) & (longer > 0) & (rng.random(len(late)) < 0.4)
        rating = np.where(shorter, 2, rating)
        days = drawn(rule, replace(before, rating=rating), draw)
    leaves = 0.05 + 0.5 * longer * (state.stability < np.median(state.stability))
    stays = rng.random(len(late)) >= leaves if habit == GIVES_UP else np.ones(len(late), np.bool_)
    step = np.array([0, 0, -150, 0, 150])[rating]
    state.ease = np.maximum(state.ease + np.where(recalled, step, -200), 1300)
    state.day = state.day + elapsed
    state.interval = np.where(recalled, days, 1)
    grown = state.stability * (1.6 + 6 * (1 - recall))
    state.stability = np.where(recalled, grown, np.maximum(0.5 * state.stability, 1))
    state.count = state.count + np.where(recalled, 1, 2)
    given = np.where(recalled, days, -600)
    rows = _rows(state, rng, np.where(recalled, rating, 1), given, kind=1, recall=recall)
    again = rows[~recalled]
    again[:, 0] += 600_000
    again[:, 2:4] = 3, 1
    again[:, 6] = 2
    return [rows, again], stays


def _rows(
    state: _Cards,
    rng: np.random.Generator,
    rating: IntArray | int,
    given: IntArray,
    *,
    kind: int,
    recall: FloatArray | float,
) -> FloatArray:
    """Return rows of the table of reviews, with the true recall as the last column."""
    n = len(state.day)
    time = _START_MS + _DAY_MS * state.day + rng.integers(6, 20, n) * 3_600_000
    time += rng.integers(0, 3_600_000, n)
    columns = (time, state.number, rating, given, state.ease, rng.integers(2000, 9000, n), kind)
    return np.column_stack([np.broadcast_to(each, n) for each in (*columns, recall)]).astype(float)
