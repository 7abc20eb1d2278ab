"""How long until recall has fallen to a given probability, and what a fit leaves open of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from srs_eval.algorithms.algorithm import Algorithm, MemoryModel, Sampling
from srs_eval.data.reviews import FloatArray, IntArray, Reviews, Vector
from srs_eval.engine.equations import NUMPY_MATHS, Equations
from srs_eval.evaluation.evaluate import FittedUser

DRAWS, LEVEL = 200, 0.9  # Models around a fit, and how often their range holds the true interval

# Logarithms of the shortest and longest interval in days that is told.
_SHORTEST, _LONGEST = np.log(1e-9), np.log(1e9)
# Each round asks at so many times, and looks between two of them in the next; with these numbers
# the last two are 4e-5 apart, as a share.
_STEPS, _ROUNDS = np.linspace(0, 1, 17), 5
_RATINGS = {"again": 1, "hard": 2, "good": 3, "easy": 4}


def days_until(
    curves: Callable[[Vector], FloatArray], count: int, retention: float | Vector
) -> Vector:
    """Return after how many days each of `count` curves first falls below a retention.

    `curves` returns the recall at other times of each card, both [count, k]. 0 where recall is
    lower from the beginning, infinity where it never is, NaN where it is not known.
    """
    target = np.broadcast_to(np.asarray(retention, np.float64), count)
    low, high = np.full(count, _SHORTEST), np.full(count, _LONGEST)
    rows = np.arange(count)
    for turn in range(_ROUNDS):
        times = low[:, None] + (high - low)[:, None] * _STEPS
        p = np.asarray(curves(np.exp(times)), np.float64)
        below = p < target[:, None]
        if turn == 0:
            always, never = below[:, 0], ~below.any(axis=1)
            unknown = np.isnan(p).any(axis=1)
        after = np.clip(below.argmax(axis=1), 1, len(_STEPS) - 1)
        low, high = times[rows, after - 1], times[rows, after]
        above, under = p[rows, after - 1], p[rows, after]
    fallen = np.maximum(above - under, np.finfo(float).tiny)
    days: Vector = np.exp(low + (high - low) * np.clip((above - target) / fallen, 0, 1))
    days[always], days[never], days[unknown] = 0.0, np.inf, np.nan
    return days


def first_intervals(
    equations: Equations, parameters: tuple[float, ...], retention: float
) -> dict[str, float | None]:
    """Return the days until recall has fallen to `retention` after a first review, by rating.

    The forgetting curve is solved, whatever its form; None where that takes less than 1e-9 or more
    than 1e9 days. In FSRS v4 to 6, 90 % is reached after the stability; in FSRS-7, whose curve is a
    mixture, no stability in the state says when.

    >>> from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6Equations
    >>> published = Fsrs6Equations.parameters.defaults
    >>> round(first_intervals(Fsrs6Equations(), published, 0.9)["good"], 8), published[2]
    (2.3065, 2.3065)
    """
    w, m = np.asarray(parameters), NUMPY_MATHS
    state = equations.init(m, w, np.array(list(_RATINGS.values()), np.float64)[:, None])
    days = days_until(lambda elapsed: equations.curve(m, w, state, elapsed), 4, retention)
    possible = np.isfinite(days) & (days > 0)
    return {
        name: float(each) if is_possible else None
        for name, each, is_possible in zip(_RATINGS, days, possible, strict=True)
    }


def next_intervals(
    model: Any, reviews: Reviews, rows: IntArray, retention: float | Vector
) -> Vector:
    """Return the days from the review before each of `rows` until recall falls to a retention."""
    return days_until(partial(model.predict_at, reviews, rows), len(rows), retention)


def ranges(value: Vector, draws: Sequence[Vector], level: float) -> tuple[Vector, Vector]:
    """Return quantiles of draws, between which the value always is; NaN where there are none."""
    if not draws:
        return np.full(len(value), np.nan), np.full(len(value), np.nan)
    below = (1 - level) / 2
    lo, hi = np.quantile(draws, [below, 1 - below], axis=0, method="nearest")
    return np.minimum(lo, value), np.maximum(hi, value)


def sampled(algorithm: Algorithm, fitted: FittedUser, seed: int, count: int) -> list[MemoryModel]:
    """Draw models around a fit; none where the algorithm does not say how uncertain it is."""
    if not isinstance(algorithm, Sampling) or fitted.model is None or fitted.reviews is None:
        return []
    assert fitted.rows is not None
    reviews, rng = fitted.reviews.seen_by(algorithm), np.random.default_rng(seed)
    return list(algorithm.sample(reviews, fitted.rows, fitted.model, rng, count))
