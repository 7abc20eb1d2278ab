"""Stabilities after the first review, found from second reviews alone.

The first step of training FSRS v4 to 6: what happened at a card's second review depends on
its first rating and on the time between them only, so that four one-dimensional fits give
`w[0]` to `w[3]`. Ye, *The Algorithm*, wiki of fsrs4anki, 2023 to 2026. There, a quasi-Newton search
starts at the default, and is stopped early where there are only a few reviews.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.optimize import minimize_scalar

from srs_eval.data.reviews import BoolArray, FloatArray, IntArray

LONGEST_FIRST_STABILITY = 100.0
# How first stabilities usually lie to each other, in logarithms of those of Again to Easy: that of
# Hard is 0.41 of the way from Good to Again, that of Good is 0.54 of the way from Hard to Easy.
_RULES = np.array([[0.41, -1.0, 0.59, 0.0], [0.0, 0.46, -1.0, 0.54]])
_PAIRS = ((0, 1), (1, 2), (2, 3), (0, 2), (1, 3), (0, 3))
# How strongly a stability is drawn to its default, per day.
_PULL = 1 / 16
_POINTS = 20


def initial_stabilities(
    first_rating: IntArray,
    elapsed: FloatArray,
    recalled: BoolArray,
    *,
    mean_recall: float | None,
    decay: float,
    defaults: FloatArray,
    shortest: float,
) -> FloatArray:
    """Find the stability, in days, after each first rating from the second reviews of a fold.

    For each first rating, the log loss of the power curve with exponent ``-decay`` is minimised
    over `shortest` to 100 days. In whole days, with a `mean_recall` of *all* training reviews, the
    recall of reviews with the same first rating and elapsed time is averaged with this one more
    outcome, and a stability costs 1/16 for every day it lies from its default. Ratings without
    reviews are filled in from the others.
    """
    four, counts = np.full(4, np.nan), np.bincount(first_rating - 1, minlength=4)
    for number in np.flatnonzero(counts).tolist():
        # Reviews with the same elapsed time count alike.
        own = first_rating == number + 1
        days, place, n = np.unique(elapsed[own], return_inverse=True, return_counts=True)
        passes: FloatArray = np.bincount(place, recalled[own]).astype(np.float64)
        if mean_recall is not None:
            passes = (passes + mean_recall) * n / (n + 1)
        pull = 0.0 if mean_recall is None else _PULL
        four[number] = _of_least_loss(
            days, n, passes, decay, float(defaults[number]), pull, shortest
        )
    return np.clip(filled(in_order(four, counts), defaults), shortest, LONGEST_FIRST_STABILITY)


def _of_least_loss(
    days: FloatArray,
    n: IntArray,
    passes: FloatArray,
    decay: float,
    default: float,
    pull: float,
    shortest: float,
) -> float:
    """Stability that explains the passes among `n` reviews after so many days best."""
    age = (0.9 ** (-1 / decay) - 1) * days  # elapsed time at a stability of one day

    def loss(x: float) -> float:
        """Loss at the logarithm of a stability; convex, but for the pull below the default."""
        delay = decay * np.log1p(np.exp(-x) * age)
        log_loss = (passes * delay - (n - passes) * np.log(-np.expm1(-delay))).sum()
        return float(log_loss + pull * abs(np.exp(x) - default))

    # The pull has a kink at the default.
    kink = np.log(np.clip(default, shortest, LONGEST_FIRST_STABILITY))
    points = np.linspace(np.log(shortest), np.log(LONGEST_FIRST_STABILITY), _POINTS)
    knots = np.sort(np.append(points, kink))
    best = int(np.argmin([loss(x) for x in knots]))
    between = [
        minimize_scalar(loss, bounds=ends, method="bounded", options={"xatol": 1e-10}).x
        for ends in pairwise(knots[max(best - 1, 0) : best + 2])
    ]
    return float(np.exp(min((knots[best], *between), key=loss)))


def in_order(four: FloatArray, counts: IntArray) -> FloatArray:
    """Make stabilities grow with the rating: the one with fewer reviews takes the other value."""
    ordered = four.copy()
    for small, large in _PAIRS:
        if ordered[small] > ordered[large]:  # NaN, for a rating without reviews, is not larger
            of, to = (small, large) if counts[small] > counts[large] else (large, small)
            ordered[to] = ordered[of]
    return ordered


def filled(four: FloatArray, defaults: FloatArray) -> FloatArray:
    """Stabilities of all ratings, those of NaN from the others."""
    known, missing = np.flatnonzero(np.isfinite(four)), np.flatnonzero(np.isnan(four))
    if len(known) == 1:
        return np.asarray(defaults * (four[known] / defaults[known]))
    # Of three known ratings, the rule counts that is about the fourth, or has it at least.
    rules = _RULES[: len(missing)] if len(missing) != 1 or missing[0] < 2 else _RULES[1:]
    logarithms = np.linalg.solve(rules[:, missing], -rules[:, known] @ np.log(four[known]))
    whole = four.copy()
    whole[missing] = np.exp(logarithms)
    return whole
