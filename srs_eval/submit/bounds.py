"""Bounds that scores and sums of the same predictions cannot pass, whatever the predictions are.

All follow from convexity: the mean loss of some reviews is at least the loss of their mean error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import lambertw

from srs_eval.nouns import BoolArray, FloatArray

# Distance of a mean error from -1 and 1 that may be rounding, of which log loss makes much.
_ROUNDING = 1e-6


def _log_loss_per_square() -> float:
    """Return the minimum of -ln(1 - x) / x**2 over errors x from 0 to 1, which is 2.4554.

    Its derivative is 0 where v = 1 / (1 - x) satisfies v - 1 = 2 ln v, at v = 3.51.
    """
    v = -2 * float(lambertw(-math.exp(-0.5) / 2, k=-1).real)
    return math.log(v) / (1 - 1 / v) ** 2


# The log loss of a review is at least this times its squared error.
LOG_LOSS_PER_SQUARE = _log_loss_per_square()


def least_by_bins(
    counts: FloatArray, residuals: FloatArray
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Compute the least log loss and squared error of each user from reviews in equally wide bins.

    `counts` and `residuals` are the number of reviews, and the sum of prediction less outcome, as
    `EqualBinSums` has them, [n_users, n_bins]. Both losses are sums over all reviews, [n_users];
    also return whether predictions in these bins have such residuals, bool [n_users].
    """
    used = counts > 0
    bins = counts.shape[1]
    low = np.broadcast_to(np.arange(bins) / bins, counts.shape)
    high = low + 1 / bins
    error = np.divide(residuals, counts, out=np.zeros_like(residuals), where=used)
    fits = (error >= low - 1 - _ROUNDING) & (error <= high + _ROUNDING)
    error = np.clip(error, low - 1, high)
    # Errors of recalled reviews lie from low - 1 to high - 1, of others from low to high. Both
    # losses are convex on each side, and the chord between is below what mixtures of both have.
    share = np.clip((error - high + 1) / np.maximum(low - high + 1, _ROUNDING), 0, 1)
    of_recalled, of_forgotten = np.minimum(error, high - 1), np.maximum(error, low)
    least = [
        (counts * ((1 - share) * loss(-of_recalled) + share * loss(of_forgotten))).sum(axis=1)
        for loss in (_log_loss, np.square)
    ]
    return least[0], least[1], (fits | ~used).all(axis=1)


def _log_loss(error: FloatArray) -> FloatArray:
    """Compute a convex function that is nowhere above the log loss of clipped predictions."""
    found: FloatArray = -np.log1p(_ROUNDING - error)
    return found


def auc_between(
    tables: Sequence[tuple[FloatArray, FloatArray]], recalled: FloatArray, reviews: FloatArray
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Compute the lowest and highest AUC that confusion tables at several thresholds allow.

    Pairs of reviews on different sides of a threshold are ordered; of the others nothing is known.
    Each table has the reviews with predictions from a threshold on, and how many of them were
    recalled, in increasing order of the thresholds; `reviews` counts all reviews, `recalled` those
    that were recalled. All arrays are [n_users]. Both AUC are NaN where all reviews were recalled
    or none was. Also return whether predictions have these tables, bool [n_users]: at a higher
    threshold no count is larger.
    """
    hits = np.stack([recalled, *(hit for _, hit in tables), np.zeros_like(recalled)])
    above = np.stack([reviews, *(predicted for predicted, _ in tables), np.zeros_like(reviews)])
    positive, negative = -np.diff(hits, axis=0), -np.diff(above - hits, axis=0)
    below = np.cumsum(negative, axis=0) - negative  # forgotten reviews with lower predictions
    with np.errstate(invalid="ignore", divide="ignore"):
        pairs = recalled * (reviews - recalled)
        low = (positive * below).sum(axis=0) / pairs
        high = low + (positive * negative).sum(axis=0) / pairs
    possible: BoolArray = np.all((positive >= 0) & (negative >= 0), axis=0)
    return low, high, possible
