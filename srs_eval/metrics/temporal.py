"""The temporal check: predicted recall should fall as time passes.

Each sampled review has a forgetting curve at the elapsed times that occur in the same reviews.
Pairs of different times are drawn from that distribution; a pair violates the expectation where
recall is not predicted to be lower at the later time. A model that has given up on forgetting
predicts the same at both, so flat pairs are violations too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from srs_eval.data.reviews import FloatArray, IntArray
from srs_eval.errors import ScoreError
from srs_eval.metrics.predictions import Curves, Predictions

# Tolerance for rounding, for curves in double and in lower precision.
FINE, COARSE = 1e-9, 1e-6


def sample_elapsed(elapsed_days: ArrayLike, *, k: int = 16) -> tuple[FloatArray, FloatArray]:
    """Choose at most `k` elapsed times that represent the intervals of some reviews.

    They are all the different intervals if these are at most k, else those at the middles of k
    equal parts of the sorted intervals, equal ones joined. Weights are the shares of the intervals
    each time stands for. NaN and negative intervals are left out.

    >>> times, weights = sample_elapsed([1, 1, 3, 8])
    >>> times.tolist(), weights.tolist()
    ([1.0, 3.0, 8.0], [0.5, 0.25, 0.25])
    """
    intervals = np.asarray(elapsed_days, np.float64)
    intervals = np.sort(intervals[intervals >= 0])
    times, counts = np.unique(intervals, return_counts=True)
    if len(times) > k:
        middles = ((2 * np.arange(k) + 1) * len(intervals)) // (2 * k)
        times, counts = np.unique(intervals[middles], return_counts=True)
    return times, counts / max(1, counts.sum())


def temporal_rates(curves: Curves) -> FloatArray:
    """Shares of the pairs of times at which recall rises, and stays, along each curve [2, n].

    Differences up to 1e-9 in float64, and 1e-6 below it, count as none. NaN for a curve at fewer
    than two times.
    """
    allowed = FINE if curves.p.dtype.itemsize >= 8 else COARSE
    rises, stays, pairs = np.zeros((3, len(curves.p)))
    for first in range(curves.p.shape[1] - 1):
        later = slice(first + 1, None)
        rise = curves.p[:, later] - curves.p[:, first, None]
        # How often each pair is drawn, up to a factor of each curve. Missing times weigh nothing;
        # their predictions may be anything.
        mass = curves.weight[:, first, None] * curves.weight[:, later]
        rises += np.where(rise > allowed, mass, 0).sum(axis=1)
        stays += np.where(np.abs(rise) <= allowed, mass, 0).sum(axis=1)
        pairs += mass.sum(axis=1)
    rates = np.full((2, len(pairs)), np.nan)
    np.divide([rises, stays], pairs, out=rates, where=pairs > 0)
    return rates


def curve_columns(curves: Curves | None) -> FloatArray:
    """1, and the shares of strict and of flat pairs, of each curve; 0 if undefined [3, n]."""
    if curves is None:
        return np.zeros((3, 0))
    strict, flat = temporal_rates(curves)
    columns = np.stack([np.ones(len(strict)), strict, flat])
    return np.where(np.isnan(strict), 0, columns)


def reviews_of_curves(predictions: Predictions) -> IntArray:
    """Return the position of each forgetting curve's review, known by its user, fold and row."""
    curves = predictions.curves
    if curves is None:
        return np.empty(0, np.int64)
    # Few of many reviews have a curve: the others are set aside before anything is sorted.
    rows = np.flatnonzero(np.isin(predictions.row, curves.row))
    reviews = np.stack([predictions.user, predictions.fold, predictions.row], axis=1)[rows]
    keys = np.concatenate([reviews, np.stack([curves.user, curves.fold, curves.row], axis=1)])
    _, code = np.unique(keys, axis=0, return_inverse=True)
    position = np.full(len(keys), -1)
    position[code[: len(rows)]] = rows
    positions: IntArray = position[code[len(rows) :]]
    if (strangers := positions < 0).any():
        raise ScoreError(
            f"forgetting curve {np.argmax(strangers)} (and {strangers.sum() - 1} more) belongs to "
            "a review that was not scored; curves must be of rows that are in the predictions"
        )
    return positions
