"""Do the kernels compute what the equations say?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from plain_walk import plain_walk
from random_logs import further_rows
from torch_maths import Oracle, oracle

from srs_eval.engine.compiled import CompiledModel
from srs_eval.engine.equations import Equations, NumpyMaths
from srs_eval.engine.packing import pack
from srs_eval.nouns import FloatArray, IntArray, Reviews

# Nearer to 0 or 1, a rounding error of p is no small error of the loss.
_LEAST_P = {np.float64: 1e-4, np.float32: 0.02}
# Of loss and gradient, of information, and share of the largest that counts for the others.
_TOLERANCE = {np.float64: (1e-9, 1e-8, 1e-3), np.float32: (1e-4, 1e-3, 0.03)}
Real = type[np.float32] | type[np.float64]


def walk_agrees(
    model: CompiledModel, w: FloatArray, reviews: Reviews, *, rtol: float = 1e-12
) -> None:
    """Check predictions and states against numpy."""
    packed = pack(reviews)
    p, states = model.walk(w, packed)
    places = packed.where
    with np.errstate(all="ignore"):
        moments = plain_walk(model.equations, NumpyMaths(), w, reviews)
    for moment in moments:
        place, lane = np.divmod(places[moment.rows], p.shape[1])
        for index, expected in enumerate(moment.state):
            np.testing.assert_allclose(states[place, index, lane], expected, rtol=rtol)
        expected = np.nan if moment.p is None else moment.p
        np.testing.assert_allclose(p[place, lane], expected, rtol=rtol, atol=1e-12)


def plain_predictions(equations: Equations, w: FloatArray, reviews: Reviews) -> NDArray[np.float64]:
    """Predictions by numpy, NaN at first reviews."""
    p = np.full(len(reviews), np.nan)
    with np.errstate(all="ignore"):
        for moment in plain_walk(equations, NumpyMaths(), w, reviews)[1:]:
            p[moment.rows] = moment.p
    return p


def expectation(
    equations: Equations, w: FloatArray, reviews: Reviews, seed: int, dtype: Real
) -> tuple[Oracle, IntArray, FloatArray]:
    """Choose rows and weights at random; compute what is to come of them."""
    rng = np.random.default_rng(seed)
    rows = further_rows(reviews)
    rows = rows[rng.random(len(rows)) < 0.8] if len(rows) > 5 else rows
    weight = rng.uniform(0.2, 2.0, len(rows)).astype(np.float32).astype(float)
    p = plain_predictions(equations, w, reviews)[rows]
    least = _LEAST_P[dtype]
    weight = np.where((p > least) & (p < 1 - least), weight, 0.0)
    return oracle(equations, w, reviews, rows, weight), rows, weight


def kernels_agree(
    model: CompiledModel,
    w: FloatArray,
    reviews: Reviews,
    rows: IntArray,
    weight: FloatArray,
    expected: Oracle,
    dtype: Real,
) -> None:
    """Check loss, gradient and Fisher information against PyTorch."""
    packed = pack(reviews, rows, weight=weight, dtype=dtype)
    tolerance, of_information, slack = _TOLERANCE[dtype]
    gradient = model.gradient(w, packed)
    fisher = model.fisher(w, packed)
    for found in (gradient, fisher):
        np.testing.assert_allclose(found.loss, expected.loss, rtol=tolerance, atol=1e-300)
        error = np.abs(found.gradient - expected.gradient)
        # What is small beside the largest need not be right to as many digits of its own.
        shares = expected.shares + slack * expected.shares.max(initial=0)
        np.testing.assert_array_less(error, tolerance * shares + 1e-12)
    scale = np.sqrt(np.diag(expected.information))
    scale += slack * scale.max(initial=0)
    error = np.abs(fisher.information - expected.information)
    np.testing.assert_array_less(error, of_information * np.outer(scale, scale) + 1e-12)
    error = np.abs(fisher.information - fisher.information.T)
    np.testing.assert_array_less(error, 1e-14 * np.outer(scale, scale) + 1e-300)
