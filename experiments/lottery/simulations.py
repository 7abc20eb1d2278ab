"""Simulated reviews whose intervals are drawn by lot: the critics' case, and whole collections."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from rules import Answers, Lots, Rule, drawn, fuzz_factor, possible
from scipy.special import expit

from srs_eval.data.reviews import FloatArray, IntArray

EIGHT_DAYS = np.log(8)
DAY_MS, START_MS = 86_400_000, 1_577_836_800_000  # 2020-01-01
SETTINGS = {"schedVer": 2, "rollover": 4, "localOffset": 0}
GIVES_UP = "gives up hard cards, the more so the longer their interval"
WEEKENDS = "remembers half as long at weekends"
SHOWN = "presses Hard where the interval shown for Good is long"
HABITS = (GIVES_UP, WEEKENDS, SHOWN)
SHAPE = 0.7  # exponent of forgetting curves
STEPS = 12  # of Newton's method

# Recall after so many days, of the rows of `Critics.trials`
Curve = Callable[[IntArray, FloatArray], FloatArray]


class Critics(NamedTuple):
    """Reviews of cards whose stability the app knows, and models only in part."""

    trials: pd.DataFrame  # as those of a lottery
    lots: Lots
    seen: FloatArray  # what models see of the logarithm of stability
    stability: FloatArray  # days until recall has fallen to 90 %


def answers_before(
    rating: IntArray, interval: IntArray, late: IntArray, ease: FloatArray, easy: float
) -> Answers:
    """Return what was known before answers, with a preset's usual options but for Easy."""
    ones = np.ones(len(rating))
    names = "rating,interval,late,ease,modifier,hard,easy,maximum"
    columns = [rating, interval, late, ease, ones, 1.2 * ones, easy * ones, 36500 * ones]
    return np.rec.fromarrays(columns, names=names)


def critics_case(rng: np.random.Generator, n: int) -> Critics:
    """Simulate an app that hits 90 % with every card, whatever its stability.

    Intervals are as long as cards are stable, so that recall hardly depends on them; and what is
    stable comes later still.
    """
    seen, hidden = rng.normal(0, 0.5, n), rng.normal(0, 0.8, n)
    stability = np.exp(EIGHT_DAYS + seen + hidden)
    ideal = np.exp(EIGHT_DAYS + seen + hidden + rng.normal(0, 0.15, n))
    interval = np.maximum(ideal, 3).astype(np.int64)
    one = np.ones(n, np.int64)
    # of a card after a day, which version 1 gives just that interval before the draw
    before = answers_before(3 * one, one, 0 * one, interval.astype(float), 1)
    lots = Lots.of_weights(n, *possible(Rule.V1, before))
    days = sampled(lots, rng)
    late = np.where(rng.random(n) < 0.3, rng.geometric(0.3, n) * (1 + (hidden > 0)), 0)
    elapsed = (days + late).astype(float)
    recalled = (rng.random(n) < 0.9 ** (elapsed / stability)).astype(float)
    mean = lots.mean(np.log(lots.days))
    trials = pd.DataFrame({"card": np.arange(n), "recalled": recalled, "elapsed": elapsed})
    trials = trials.assign(days=days, z=np.log(days) - mean, cell=interval)
    return Critics(trials, lots, seen, stability)


def sampled(lots: Lots, rng: np.random.Generator) -> IntArray:
    """Draw an interval from the lots of each answer."""
    ends = np.cumsum(np.bincount(lots.answer, minlength=lots.n))
    begins = np.concatenate([[0], ends[:-1]])
    total = np.cumsum(lots.probability)
    place = np.searchsorted(total, np.arange(lots.n) + rng.random(lots.n), side="right")
    return lots.days[np.clip(place, begins, ends - 1)]


def associational(train: Critics, test: Critics) -> Curve:
    """Predict by a flexible regression on the days that went by, as benchmarks reward."""
    weights = np.zeros(6)
    x = features(train.seen, train.trials["elapsed"].to_numpy())
    y = train.trials["recalled"].to_numpy()
    for _ in range(STEPS):
        p = expit(x @ weights)
        curvature = (x * (p * (1 - p))[:, None]).T @ x + 1e-6 * np.eye(6)
        weights += np.linalg.solve(curvature, x.T @ (y - p))
    return lambda rows, days: expit(features(test.seen[rows], days) @ weights)


def features(seen: FloatArray, days: FloatArray) -> FloatArray:
    """Return powers of what is seen and of ln days."""
    t = np.log(days)
    return np.column_stack([np.ones(len(t)), t, seen, t * t, seen * t, seen * seen])


def honest(_: Critics, test: Critics) -> Curve:
    """Predict by the right kind of curve, its stability taken from what is seen."""
    return lambda rows, days: 0.9 ** (days / np.exp(EIGHT_DAYS + test.seen[rows] + 0.3))


def truth(_: Critics, test: Critics) -> Curve:
    """Predict by the true curve."""
    return lambda rows, days: 0.9 ** (days / test.stability[rows])


def said_by(curve: Curve, test: Critics) -> pd.DataFrame:
    """Predict at the days that went by, those drawn, and those that could have been."""
    rows, lots = np.arange(len(test.trials)), test.lots
    return pd.DataFrame(
        {
            "actual": curve(rows, test.trials["elapsed"].to_numpy()),
            "drawn": curve(rows, test.trials["days"].to_numpy(float)),
            "mean": lots.mean(curve(lots.answer, lots.days.astype(float))),
        }
    )


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
    state = pd.DataFrame({"number": START_MS - 10**9 + 1000 * np.arange(cards)})
    state["day"] = rng.integers(0, days // 2, cards)  # of the last review
    state["interval"] = 1  # days that it gave
    state["ease"] = 2500  # per mille
    state["stability"] = np.exp(rng.normal(1.5, 0.8, cards))
    state["count"] = 1  # answers so far
    table = [answer_rows(state, rng, 3, state["interval"], kind=0, recall=1.0)]
    while len(state):
        late = np.where(rng.random(len(state)) < 0.2, rng.geometric(0.4, len(state)), 0)
        in_time = (state["day"] + state["interval"] + late < days).to_numpy()
        state, late = state[in_time], late[in_time]
        if len(late):
            state, answers = answered(state, late, rng, rule, habit)
            table += answers
    rows = np.concatenate(table)
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    rows[:, 0] = np.maximum.accumulate(rows[:, 0] - np.arange(len(rows))) + np.arange(len(rows))
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("create table col (id, crt, conf)")
        settings = 1, START_MS // 1000, json.dumps(SETTINGS)
        database.execute("insert into col values (?, ?, ?)", settings)
        columns = "id integer primary key, cid, ease, ivl, factor, time, type"
        database.execute(f"create table revlog ({columns})")
        insert = "insert into revlog values (?, ?, ?, ?, ?, ?, ?)"
        database.executemany(insert, rows[:, :-1].astype(np.int64).tolist())
    return rows[:, -1]


def answered(
    state: pd.DataFrame, late: IntArray, rng: np.random.Generator, rule: Rule, habit: str
) -> tuple[pd.DataFrame, list[FloatArray]]:
    """Answer every card once; return those that stay, moved on, and rows of the table."""
    n, interval, stability = len(late), state["interval"].to_numpy(), state["stability"].to_numpy()
    elapsed = interval + late
    at_weekend = (state["day"] + elapsed) % 7 > 4
    rested = np.where(at_weekend & (habit == WEEKENDS), 0.5, 1.0)
    recall = (1 + (0.9 ** (-1 / SHAPE) - 1) * elapsed / (stability * rested)) ** -SHAPE
    recalled, chosen = rng.random(n) < recall, rng.random(n)
    rating = np.where(chosen < 0.05 + 0.3 * (1 - recall), 2, np.where(chosen > 0.85, 4, 3))
    before = answers_before(rating, interval, late, state["ease"].to_numpy() / 1000, 1.3)
    lots = Lots.of_weights(n, *possible(rule, before))
    draw = fuzz_factor(state["number"].to_numpy(), state["count"].to_numpy())
    days = drawn(rule, before, draw) if rule.is_seeded else sampled(lots, rng)
    longer = np.log(days) - lots.mean(np.log(lots.days))
    if habit == SHOWN:
        before.rating[(rating == 3) & (longer > 0) & (rng.random(n) < 0.4)] = 2
        rating, days = before.rating, drawn(rule, before, draw)
    leaves = 0.05 + 0.5 * longer * (stability < np.median(stability))
    stays = rng.random(n) >= leaves if habit == GIVES_UP else np.ones(n, np.bool_)
    step = np.array([0, 0, -150, 0, 150])[rating]
    grown = stability * (1.6 + 6 * (1 - recall))
    state = state.assign(
        ease=np.maximum(state["ease"] + np.where(recalled, step, -200), 1300),
        day=state["day"] + elapsed,
        interval=np.where(recalled, days, 1),
        stability=np.where(recalled, grown, np.maximum(0.5 * stability, 1)),
        count=state["count"] + np.where(recalled, 1, 2),
    )
    given = np.where(recalled, days, -600)
    rows = answer_rows(state, rng, np.where(recalled, rating, 1), given, kind=1, recall=recall)
    again = rows[~recalled]
    again[:, 0] += 600_000
    again[:, 2:4] = 3, 1
    again[:, 6] = 2
    return state[stays], [rows, again]


def answer_rows(
    state: pd.DataFrame,
    rng: np.random.Generator,
    rating: IntArray | int,
    given: IntArray,
    *,
    kind: int,
    recall: FloatArray | float,
) -> FloatArray:
    """Return rows of the table of reviews, with the true recall as the last column."""
    n = len(state)
    time = START_MS + DAY_MS * state["day"] + rng.integers(6, 20, n) * 3_600_000
    time += rng.integers(0, 3_600_000, n)
    columns = time, state["number"], rating, given, state["ease"], rng.integers(2000, 9000, n), kind
    return np.column_stack([np.broadcast_to(each, n) for each in (*columns, recall)]).astype(float)
