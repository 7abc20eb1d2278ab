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
from srs_eval.metrics.resample import LEVEL, USER_RESAMPLES, bca_interval, cluster_counts
from srs_eval.metrics.significance import Wilcoxon, wilcoxon, wilson_interval
from srs_eval.nouns import Better, FloatArray

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


def weighted_mean(values: FloatArray, weights: FloatArray) -> float:
    """Average over users; NaN values are left out.

    Parameters
    ----------
    values, weights : float [users]
        Weights are at least 0.

    Returns
    -------
    float
        NaN if nothing with a weight is left.
    """
    values, weights = _defined(values, weights)
    total = weights.sum()
    return float(values @ weights / total) if total > 0 else math.nan


def linearised_se(values: FloatArray, weights: FloatArray) -> float:
    """Estimate the standard error of a weighted mean over users, without resampling.

    Within 0.2 % of the bootstrap for thousands of users; too small by a tenth for 19 users
    with weights that differ much: resample below a hundred or so.

    Returns
    -------
    float
        At least 0: sqrt(sum(w**2 (x - mean)**2)) / sum(w). NaN with fewer than two users.

    References
    ----------
    Cochran (1977), Sampling techniques, section 6: the variance of a ratio.
    """
    values, weights = _defined(values, weights)
    if np.count_nonzero(weights) < 2:
        return math.nan
    total = float(weights.sum())
    mean = float(values @ weights) / total
    return math.sqrt(float((weights**2) @ (values - mean) ** 2)) / total


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


def resampled_weighted_means(
    values: FloatArray,
    weights: FloatArray,
    *,
    resamples: int = USER_RESAMPLES,
    seed: int = 0,
) -> FloatArray:
    """Weighted mean of each column over users drawn with replacement.

    Equally many users and the same seed mean the same draws: see `resampled_means`. So
    differences between columns or calls, models or metrics, keep their pairing.

    Parameters
    ----------
    values : float [users, columns]
        NaN where a column is not defined for a user, who is then left out of it.
    weights : float [users]
        At least 0; drawn with their user.

    Returns
    -------
    float64 [resamples, columns]
        Each a ratio of resampled sums. NaN where a resample has no user with a weight.
    """
    present = ~np.isnan(values)
    # Columns are centred so that rounding does not depend on how far they are from 0.
    centre = np.array([weighted_mean(column, weights) for column in values.T])
    centre = np.where(np.isnan(centre), 0.0, centre)
    above = np.where(present, (values - centre) * weights[:, None], 0.0)
    below = np.where(present, weights[:, None], 0.0)
    means = np.full((resamples, values.shape[1]), np.nan)
    begin = 0
    for counts in cluster_counts(len(values), resamples, seed) if len(values) else ():
        block = means[begin : begin + len(counts)]
        held = counts @ below
        np.divide(counts @ above, held, out=block, where=held > 0)
        block += centre
        begin += len(counts)
    return means


def weighted_interval(
    values: FloatArray, weights: FloatArray, means: FloatArray, *, level: float = LEVEL
) -> tuple[float, float]:
    """Bias-corrected and accelerated interval of a weighted mean: see `bca_interval`.

    Parameters
    ----------
    values, weights : float [users]
        NaN values are left out.
    means : float [resamples]
        From `resampled_weighted_means`.
    level : float
        Share of intervals that should hold the true mean.

    Returns
    -------
    lo, hi : float
        NaN where fewer than five users have a weight.
    """
    values, weights = _defined(values, weights)
    total = weights.sum()
    if total <= 0:
        return math.nan, math.nan
    mean = float(values @ weights / total)
    # Each user's pull on the ratio: their mean is the ratio, their skewness its acceleration.
    pull = len(values) * weights * (values - mean) / total
    return bca_interval(mean + pull, means, level=level)


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
    mean_a, mean_b : float
        Weighted means over the users both have a number for.
    difference : float
        `mean_a` - `mean_b`, and `lo`, `hi` its interval from drawing users; NaN with fewer
        than five.
    se : float
        Linearised standard error of the difference.
    superiority : float
        Share of users for whom the first is better, ties counting half, and
        `superiority_lo`, `superiority_hi` its Wilson interval.
    wilcoxon : Wilcoxon
        Signed-rank test of the differences.
    n_users, n_left_out : int
        Users compared, and users left out because a number is missing.
    effective_users : float
        Users of equal weight that would be as good.
    """

    mean_a: float
    mean_b: float
    difference: float
    lo: float
    hi: float
    se: float
    superiority: float
    superiority_lo: float
    superiority_hi: float
    wilcoxon: Wilcoxon
    n_users: int
    n_left_out: int
    effective_users: float


def compare(
    a: ArrayLike,
    b: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    better: Better = "lower",
    resamples: int = USER_RESAMPLES,
    seed: int = 0,
    level: float = LEVEL,
) -> Comparison:
    """Compare one metric of two models over the same users.

    Parameters
    ----------
    a, b : float [users]
        Score of each user; NaN where a model has none.
    weights : float [users], optional
        How much each user counts: see `user_weights`; the same by default.
    better : str
        Which way is better: ``lower``, ``higher``, ``neither``, or nearest to ``zero``: then
        it is sizes that are compared, not signs.
    resamples, seed, level
        Of the bootstrap, which draws the same users in every comparison of equally many.

    Returns
    -------
    Comparison

    Raises
    ------
    ScoreError
        If the shapes differ, or a weight is negative or no number.

    Examples
    --------
    >>> found = compare([0.3, 0.2, 0.5], [0.4, 0.3, 0.6])
    >>> round(found.difference, 6), found.superiority, found.n_users
    (-0.1, 1.0, 3)
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
    if better == "zero":
        first, second = np.abs(first), np.abs(second)
    difference = first - second
    present = ~np.isnan(difference)
    n_users = int(np.count_nonzero(present))
    share = superiority(first, second, better=better)
    share_lo, share_hi = wilson_interval(share * n_users, n_users, level=level)
    drawn = resampled_weighted_means(difference[:, None], given, resamples=resamples, seed=seed)
    lo, hi = weighted_interval(difference, given, drawn[:, 0], level=level)
    return Comparison(
        mean_a=weighted_mean(first[present], given[present]),
        mean_b=weighted_mean(second[present], given[present]),
        difference=weighted_mean(difference, given),
        lo=lo,
        hi=hi,
        se=linearised_se(difference, given),
        superiority=share,
        superiority_lo=share_lo,
        superiority_hi=share_hi,
        wilcoxon=wilcoxon(difference),
        n_users=n_users,
        n_left_out=len(first) - n_users,
        effective_users=effective_users(given[present]),
    )


def _defined(values: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Leave out the users without a number."""
    present = ~np.isnan(values) & (weights > 0)
    return values[present], weights[present]
