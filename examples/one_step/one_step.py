"""FSRS-6 learned review by review: one small step of gradient descent after each answer.

    cd examples/one_step
    python -m srs_eval --config-dir conf algo=one_step

A plug-in: an algorithm with a trainer of its own, which starts where that of FSRS-6 does. Its
loops over reviews are compiled by numba, because each step needs the one before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numba
import numpy as np
from numpy.typing import NDArray

from srs_eval.algorithms.fitted import Problem
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.data.cards import rows_by_card
from srs_eval.data.reviews import (
    FloatArray,
    IntArray,
    Reviews,
    Vector,
)
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.errors import FitError

HARD, GOOD, EASY = 2, 3, 4
EASIEST, HARDEST = 1.0, 10.0  # difficulties
_RATE = 1e-4
# First stabilities lie on a larger scale than all other parameters.
_FIRST_STABILITY_GAIN = 100.0
_SHORTEST_STABILITY = 0.001
_UNCERTAIN = 1e-9
_DECIMALS = 6

# Each step needs the one before, and every one walks a history with parameters of its own.
# Compiling takes a second; keeping the result would need a folder that can be written to.
_sequential = numba.njit(error_model="numpy")


class OneStep(Fsrs6):
    """FSRS-6 with parameters that take a small step after each training review.

    Of the public benchmark, ``FSRS-6-one-step``,
    https://github.com/open-spaced-repetition/srs-benchmark, 2025. Starts at first stabilities
    found from second reviews alone. What is learned from differs from FSRS-6 as the original does:
    updates of stability read the new difficulty, a failure is not cut to what a same-day Again
    leaves, the floor of same-day updates begins at Good, and stability has no upper bound.

    Parameters
    ----------
    parameters : sequence of float, optional
        Where it starts; by default the published ones.
    binary : bool
        Whether Hard and Easy are taken for Good.
    """

    name = "one_step"

    def __init__(self, *, parameters: Sequence[float] | None = None, binary: bool = False) -> None:
        super().__init__(fit="s0", parameters=parameters, binary=binary)

    def trained(self, problem: Problem, rows: IntArray, start: Vector) -> Vector | None:
        """Go through the training reviews from the first stabilities on."""
        begun = super().trained(problem, rows, start)
        if begun is None:
            return None
        return train_one_step(problem.reviews, rows, begun, problem.space)


def train_one_step(
    reviews: Reviews, rows: IntArray, start: FloatArray, space: ParameterSpace
) -> NDArray[np.float64]:
    """Pass once over the training reviews in time order, and learn a little from each.

    Each review on a later day is predicted from the whole history of its card by the parameters of
    that moment. They take a step down the gradient of its log loss, which goes back through the
    last update of the memory only, and into the first stability if there was no update yet. `start`
    are the 21 parameters of FSRS-6 to begin with, `space` has their bounds; the result is rounded
    to 6 decimals.
    """
    order = np.argsort(reviews.card, kind="stable")
    nth = rows_by_card(reviews.card).nth
    learned = np.sort(rows[reviews.elapsed[rows] >= 1])
    places = np.argsort(order)[learned]
    w = np.clip(np.asarray(start, np.float64), space.lower, space.upper)
    _descend(
        w,
        np.asarray(space.lower, np.float64),
        np.asarray(space.upper, np.float64),
        reviews.elapsed[order].astype(np.float64),
        reviews.rating[order].astype(np.int64),
        places - nth[learned],
        places,
    )
    if not np.isfinite(w).all():
        raise FitError(f"learning one review at a time ended at the parameters {w.tolist()}")
    return np.round(w, _DECIMALS)


@_sequential
def _descend(
    w: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    elapsed: FloatArray,
    rating: IntArray,
    begins: IntArray,
    places: IntArray,
) -> None:
    """Improve `w` in place by the reviews at `places`, whose cards begin at `begins`."""
    gradient = np.empty_like(w)
    for number in range(len(places)):
        begin, place = begins[number], places[number]
        before, stability = 0.0, w[rating[begin] - 1]
        difficulty_before, difficulty = 0.0, _first_difficulty(w, rating[begin])
        for place_before in range(begin + 1, place):
            before, difficulty_before = stability, difficulty
            difficulty = _next_difficulty(w, difficulty, rating[place_before])
            stability = _next_stability(
                w, stability, difficulty, elapsed[place_before], rating[place_before]
            )
        if stability <= _SHORTEST_STABILITY:
            continue
        gradient[:] = 0.0
        last = place - 1
        if last == begin:
            gradient[rating[begin] - 1] = _FIRST_STABILITY_GAIN
        else:
            by_difficulty = _slopes_of_stability(
                w, before, stability, difficulty, elapsed[last], rating[last], gradient
            )
            _slopes_of_difficulty(w, difficulty_before, rating[last], by_difficulty, gradient)
        _chain(w[20], stability, elapsed[place], rating[place], gradient)
        for parameter in range(len(w)):
            moved = w[parameter] - _RATE * gradient[parameter]
            w[parameter] = min(max(moved, lower[parameter]), upper[parameter])


@_sequential
def _recall(decay: float, stability: float, elapsed: float) -> float:
    factor = 0.9 ** (-1 / decay) - 1
    return float((1 + factor * elapsed / stability) ** -decay)


@_sequential
def _first_difficulty(w: FloatArray, rating: int) -> float:
    return float(min(max(w[4] - math.exp(w[5] * (rating - 1)) + 1, EASIEST), HARDEST))


@_sequential
def _next_difficulty(w: FloatArray, difficulty: float, rating: int) -> float:
    moved = difficulty - w[6] * (rating - GOOD) * (HARDEST - difficulty) / 9
    target = w[4] - math.exp(w[5] * (EASY - 1)) + 1
    return float(min(max(w[7] * target + (1 - w[7]) * moved, EASIEST), HARDEST))


@_sequential
def _next_stability(
    w: FloatArray, stability: float, difficulty: float, elapsed: float, rating: int
) -> float:
    """Stability after a further review, given the difficulty after it."""
    if elapsed < 1:
        growth = math.exp(w[17] * (rating - GOOD + w[18])) * stability ** -w[19]
        updated = stability * (max(growth, 1.0) if rating >= GOOD else growth)
    else:
        forgotten = 1 - _recall(w[20], stability, elapsed)
        if rating > 1:
            growth = math.exp(w[8]) * stability ** (1 - w[9]) * (11 - difficulty)
            surprise = math.exp(forgotten * w[10]) - 1
            updated = stability + growth * surprise * _bonus(w, rating)
        else:
            kept = (stability + 1) ** w[13] - 1
            updated = w[11] * difficulty ** -w[12] * kept * math.exp(forgotten * w[14])
    return float(max(updated, _SHORTEST_STABILITY))


@_sequential
def _bonus(w: FloatArray, rating: int) -> float:
    """Return the factor by which a pass counts for less if it was hard, for more if easy."""
    if rating == HARD:
        return float(w[15])
    return float(w[16]) if rating == EASY else 1.0


@_sequential
def _slopes_of_stability(
    w: FloatArray,
    before: float,
    stability: float,
    difficulty: float,
    elapsed: float,
    rating: int,
    slopes: FloatArray,
) -> float:
    """Differentiate the last update of stability by its parameters, and by difficulty.

    Same-day updates are taken for later-day ones, and recall for a fact: in the original, too,
    `w[17]` to `w[19]` are never learned, and `w[20]` not from updates.
    """
    forgotten = 1 - _recall(w[20], before, elapsed)
    if rating > 1:
        bonus = _bonus(w, rating)
        growth = math.exp(w[8]) * before ** (1 - w[9])
        surprise = math.exp(forgotten * w[10]) - 1
        added = growth * (11 - difficulty) * surprise
        slopes[8] = added * bonus
        slopes[9] = -added * bonus * math.log(before)
        slopes[10] = growth * (11 - difficulty) * (surprise + 1) * forgotten * bonus
        if rating == HARD:
            slopes[15] = added
        elif rating == EASY:
            slopes[16] = added
        return float(-growth * surprise * bonus)
    slopes[11] = stability / w[11]
    slopes[12] = -stability * math.log(difficulty)
    slopes[13] = (
        (w[11] * difficulty ** -w[12] * math.exp(forgotten * w[14]))
        * (before + 1) ** w[13]
        * math.log(before + 1)
    )
    slopes[14] = stability * forgotten
    return float(-stability * w[12] / difficulty)


@_sequential
def _slopes_of_difficulty(
    w: FloatArray, before: float, rating: int, by_difficulty: float, slopes: FloatArray
) -> None:
    """Add the slopes of stability by what the last update of difficulty was made of.

    As in the original, they do not vanish where difficulty is held at one of its bounds.
    """
    room = (HARDEST - before) / 9
    target = w[4] - math.exp(w[5] * (EASY - 1)) + 1
    slopes[4] = by_difficulty * w[7]
    slopes[5] = -by_difficulty * w[7] * (EASY - 1) * math.exp(w[5] * (EASY - 1))
    slopes[6] = -by_difficulty * (1 - w[7]) * (rating - GOOD) * room
    slopes[7] = by_difficulty * (target - (before - w[6] * (rating - GOOD) * room))


@_sequential
def _chain(
    decay: float, stability: float, elapsed: float, rating: int, gradient: FloatArray
) -> None:
    """Turn slopes of the stability into those of the log loss, and add that of the decay."""
    power = 0.9 ** (-1 / decay)
    age = 1 + (power - 1) * elapsed / stability
    p = age**-decay
    sure = min(max(p, _UNCERTAIN), 1 - _UNCERTAIN)
    by_p = (sure - (rating > 1)) / (sure * (1 - sure))
    by_stability = decay * age ** (-decay - 1) * (power - 1) * elapsed / stability**2
    by_factor = power * math.log(0.9) / decay**2
    for number in range(20):
        gradient[number] *= by_p * by_stability
    gradient[20] = -by_p * sure * (math.log(age) + decay / age * elapsed / stability * by_factor)
