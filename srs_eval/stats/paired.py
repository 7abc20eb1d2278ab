"""Comparison of two models over the same users: by how much, for how many users, how surely.

Users (or whatever clusters the rows stand for) differ more than models do, so models are
compared within each of them. A user for whom one of the two has no number is left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from srs_eval.errors import ConfigError, ScoreError
from srs_eval.nouns import Better, FloatArray
from srs_eval.stats.estimate import ROUNDING, Estimate, mean_of_users
from srs_eval.stats.significance import SignTest, sign_test

Weighting = Literal["users", "reviews", "log_reviews"]


def user_weights(n_reviews: ArrayLike, weighting: Weighting = "users") -> FloatArray:
    """Say how much each user counts.

    Parameters
    ----------
    n_reviews : int [users]
        Scored reviews of each user.
    weighting : str
        ``users``: each the same, the typical user; ``reviews``: the typical review;
        ``log_reviews``: the logarithm of their number, which estimates nothing and is here
        to compare with tables that were made so.

    Returns
    -------
    float64 [users]
        At least 0, and 0 for users without reviews.

    Raises
    ------
    ConfigError
        If the weighting is none of these.
    """
    counts = np.asarray(n_reviews, np.float64)
    if weighting not in get_args(Weighting):
        raise ConfigError(f"weighting {weighting!r} is not one of {', '.join(get_args(Weighting))}")
    if weighting == "users":
        return (counts > 0).astype(np.float64)
    return counts if weighting == "reviews" else np.log(np.maximum(counts, 1))


def effective_users(weights: FloatArray) -> float:
    """Count the users of equal weight that would give as precise a mean.

    Returns
    -------
    float
        sum(w)**2 / sum(w**2): from 1, one user outweighs all others, to the number of users.
        NaN if no user has a weight.

    References
    ----------
    Kish (1965), Survey sampling.

    Examples
    --------
    >>> effective_users(np.array([1.0, 1.0, 1.0])), effective_users(np.array([1.0, 0.0]))
    (3.0, 1.0)
    """
    largest = weights.max(initial=0.0)
    if largest <= 0:
        return math.nan
    # Squares of the shares cannot overflow, nor vanish.
    shares = weights / largest
    return float(shares.sum() ** 2 / (shares**2).sum())


def superiority(
    a: FloatArray, b: FloatArray, *, better: Better = "lower", tie: float = 0.5
) -> float:
    """Share of users for whom the first model scores better than the second.

    Parameters
    ----------
    a, b : float [users]
        Users with NaN in either are left out.
    better : str
        Which way is better: ``lower``, ``higher``, nearest to ``zero``, or ``neither``.
    tie : float
        What a user counts for whom both score the same. 0.5 is fair; with 1 ties count for the
        first, as in the public benchmark's matrix for the model that is listed first.

    Returns
    -------
    float
        In [0, 1]; NaN if there are no users, or if neither direction is better.

    Examples
    --------
    >>> superiority(np.array([0.3, 0.4, 0.5]), np.array([0.35, 0.4, 0.45]))
    0.5
    """
    if better == "zero":
        a, b = np.abs(a), np.abs(b)
    gain = a - b if better == "higher" else b - a
    gain = gain[~np.isnan(gain)]
    if not len(gain) or better == "neither":
        return math.nan
    wins, ties = np.count_nonzero(gain > 0), np.count_nonzero(gain == 0)
    return float((wins + tie * ties) / len(gain))


@dataclass(frozen=True, slots=True)
class Comparison:
    """One metric of two models over the same users.

    Attributes
    ----------
    difference : Estimate
        Weighted mean of the first model's scores less the second's.
    users : SignTest
        Users for whom the first model is better, worse, and alike.
    """

    difference: Estimate
    users: SignTest


def compare(
    a: ArrayLike, b: ArrayLike, weights: ArrayLike | None = None, *, better: Better = "lower"
) -> Comparison:
    """Compare one metric of two models over the same users.

    Parameters
    ----------
    a, b : float [users]
        Score of each user; NaN where a model has none.
    weights : float [users], optional
        How much each user counts: see `user_weights`; the same by default.
    better : str
        Which way is better: ``lower``, ``higher``, or nearest to ``zero``: then it is sizes
        that are compared, not signs. With ``neither``, lower counts as better.

    Raises
    ------
    ScoreError
        If the shapes differ, a score is infinite, or a weight is negative or no number.

    Examples
    --------
    >>> found = compare([0.3, 0.2, 0.5], [0.4, 0.3, 0.7])
    >>> round(found.difference.mean, 6), found.users.better, round(found.difference.p_value, 3)
    (-0.133333, 3, 0.057)
    """
    first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
    given = np.ones(len(first)) if weights is None else np.asarray(weights, np.float64)
    if not first.shape == second.shape == given.shape:
        raise ScoreError(
            f"scores have shapes {first.shape} and {second.shape}, and weights {given.shape}: "
            "two models are compared over the same users"
        )
    if not (np.isfinite(given) & (given >= 0)).all():
        raise ScoreError("weights of users are finite and at least 0")
    if np.isinf(first).any() or np.isinf(second).any():
        raise ScoreError("scores of users are finite, or NaN where a model has none")
    if better == "zero":
        first, second = np.abs(first), np.abs(second)
    sign = -1.0 if better == "higher" else 1.0
    return Comparison(paired_mean(first, second, given), paired_signs(sign * first, sign * second))


def paired_mean(a: FloatArray, b: FloatArray, weights: FloatArray | None = None) -> Estimate:
    """Estimate the mean difference between two models' scores of the same users."""
    return mean_of_users(a - b, weights, size=_largest(a, b))


def paired_signs(a: FloatArray, b: FloatArray) -> SignTest:
    """Count users by which of two models has the lower loss."""
    return sign_test(a - b, rounding=ROUNDING * _largest(a, b))


def _largest(a: FloatArray, b: FloatArray) -> float:
    """Find the largest score in size of the users that both models have a score for."""
    both = np.abs(np.where(np.isnan(a - b), 0.0, np.maximum(np.abs(a), np.abs(b))))
    return float(both.max(initial=0.0))
