"""Paired comparison of two models over the same users, and the weights of users.

Users differ more than models do, so models are compared within each user. A user without a score
of either model is left out.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from srs_eval.errors import ConfigError
from srs_eval.nouns import FloatArray
from srs_eval.stats.estimate import ROUNDING, Estimate, mean_of_users
from srs_eval.stats.significance import SignTest, sign_test

Weighting = Literal["users", "reviews", "log_reviews"]


def user_weights(n_reviews: ArrayLike, weighting: Weighting = "users") -> FloatArray:
    """Return the weight of each user, [n_users], from the number of scored reviews of each user.

    ``users`` gives equal weights, for the typical user; ``reviews`` is for the typical review;
    ``log_reviews`` is the logarithm of their number, which estimates nothing and allows comparison
    with tables made that way. Weights are at least 0, and 0 for users without reviews. Raise
    `ConfigError` if the weighting is none of these.
    """
    counts = np.asarray(n_reviews, np.float64)
    if weighting not in get_args(Weighting):
        raise ConfigError(f"weighting {weighting!r} is not one of {', '.join(get_args(Weighting))}")
    if weighting == "users":
        return (counts > 0).astype(np.float64)
    return counts if weighting == "reviews" else np.log(np.maximum(counts, 1))


def effective_users(weights: FloatArray) -> float:
    """Return Kish's effective sample size: users of equal weight with as precise a mean.

    It is sum(w)**2 / sum(w**2): from 1, one user outweighs all others, to the number of users. NaN
    if no user has a weight. See Kish (1965), Survey sampling.

    >>> effective_users(np.array([1.0, 1.0, 1.0])), effective_users(np.array([1.0, 0.0]))
    (3.0, 1.0)
    """
    largest = weights.max(initial=0.0)
    if largest <= 0:
        return math.nan
    # Squares of the shares cannot overflow, nor vanish.
    shares = weights / largest
    return float(shares.sum() ** 2 / (shares**2).sum())


def paired_mean(a: FloatArray, b: FloatArray, weights: FloatArray | None = None) -> Estimate:
    """Estimate the mean difference between two models' scores of the same users.

    >>> found = paired_mean(np.array([0.3, 0.2, 0.5]), np.array([0.4, 0.3, 0.7]))
    >>> round(found.mean, 6), round(found.p_value, 3)
    (-0.133333, 0.057)
    """
    return mean_of_users(a - b, weights, size=_largest(a, b))


def paired_signs(a: FloatArray, b: FloatArray) -> SignTest:
    """Count the users for whom the first model has the lower loss, the higher, and the same."""
    return sign_test(a - b, rounding=ROUNDING * _largest(a, b))


def _largest(a: FloatArray, b: FloatArray) -> float:
    """Return the largest absolute score among users with scores of both models."""
    both = np.abs(np.where(np.isnan(a - b), 0.0, np.maximum(np.abs(a), np.abs(b))))
    return float(both.max(initial=0.0))
