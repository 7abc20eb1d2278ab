"""Tests and intervals for many users, and for many comparisons at once."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from srs_eval.nouns import FloatArray, IntArray

LEVEL = 0.99
# With at most so many differences the Wilcoxon test counts every way to sign the ranks.
_EXACT = 50


def wilson_interval(successes: float, n: float, *, level: float = LEVEL) -> tuple[float, float]:
    """Interval of a share, which stays within [0, 1] and is not empty at 0 or 1.

    Parameters
    ----------
    successes : float
        In [0, n]; ties may count half.
    n : float
        Trials.
    level : float
        Share of intervals that should hold the true share.

    Returns
    -------
    lo, hi : float
        NaN if n is 0.

    References
    ----------
    Wilson (1927), doi:10.1080/01621459.1927.10502953.

    Examples
    --------
    >>> [round(bound, 4) for bound in wilson_interval(8, 10, level=0.95)]
    [0.4902, 0.9433]
    """
    lo, hi = wilson_intervals(np.array([successes]), np.array([n]), level=level)
    return float(lo[0]), float(hi[0])


def wilson_intervals(
    successes: FloatArray | IntArray, n: FloatArray | IntArray, *, level: float = LEVEL
) -> tuple[FloatArray, FloatArray]:
    """Intervals of many shares: see `wilson_interval`."""
    trials = np.where(np.asarray(n) > 0, n, np.nan)
    z = float(ndtri((1 + level) / 2))
    share = successes / trials
    middle = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    spread = np.sqrt(share * (1 - share) / trials + (z / (2 * trials)) ** 2)
    half = z * spread / (1 + z * z / trials)
    # At 0 and 1 the bound is exactly that, but for rounding.
    lo = np.where(share <= 0, 0.0, np.clip(middle - half, 0, share))
    hi = np.where(share >= 1, 1.0, np.clip(middle + half, share, 1))
    return np.where(np.isnan(share), np.nan, lo), np.where(np.isnan(share), np.nan, hi)


class Wilcoxon(NamedTuple):
    """A signed-rank test of paired differences.

    Attributes
    ----------
    statistic : float
        The smaller of the rank sums of positive and negative differences.
    n_nonzero : int
        Differences that are not 0; the others have no part in the test.
    z : float
        Normal score of the statistic, at most 0; NaN if n_nonzero is 0.
    effect : float
        |z| / sqrt(n_nonzero), in [0, 1]: 0.1 is called small, 0.3 medium, 0.5 large.
    p_value : float
        Two-sided: counted exactly up to 50 differences that are not 0, else from z.
    """

    statistic: float
    n_nonzero: int
    z: float
    effect: float
    p_value: float


def wilcoxon(differences: FloatArray, *, correct_ties: bool = False) -> Wilcoxon:
    """Test whether paired differences lie around 0.

    Parameters
    ----------
    differences : float [n]
        Zeros and NaN are left out.
    correct_ties : bool
        Whether z allows for differences of equal size, which makes it a little larger. Not
        to is the convention of the tables this effect size is compared with.

    Returns
    -------
    Wilcoxon
        NaN where nothing is left.

    References
    ----------
    Wilcoxon (1945), Individual comparisons by ranking methods, doi:10.2307/3001968.

    Examples
    --------
    >>> found = wilcoxon(np.array([0.1, 0.3, -0.2, 0.4, 0.5]))
    >>> found.statistic, found.n_nonzero, round(found.p_value, 4)
    (2.0, 5, 0.1875)
    """
    held = differences[~np.isnan(differences) & (differences != 0)]
    n = len(held)
    if not n:
        return Wilcoxon(math.nan, 0, math.nan, math.nan, math.nan)
    _, place, alike = np.unique(np.abs(held), return_inverse=True, return_counts=True)
    # Equal differences share the mean of their ranks.
    ranks = (np.cumsum(alike) - (alike - 1) / 2)[place]
    whole = n * (n + 1) / 2
    above = float(ranks[held > 0].sum())
    statistic = min(above, whole - above)
    variance = n * (n + 1) * (2 * n + 1) / 24
    if correct_ties:
        variance -= float((alike.astype(np.float64) ** 3 - alike).sum()) / 48
    z = (statistic - whole / 2) / math.sqrt(variance)
    p_value = _counted(ranks, statistic) if n <= _EXACT else 2 * float(ndtr(z))
    return Wilcoxon(statistic, n, z, abs(z) / math.sqrt(n), min(1.0, p_value))


def _counted(ranks: FloatArray, statistic: float) -> float:
    """Twice the share of all ways to sign the ranks whose sum is at most the statistic."""
    # Ranks of equal differences are halves: doubled, all are whole.
    doubled = np.rint(2 * ranks).astype(np.int64)
    shares = np.zeros(int(doubled.sum()) + 1)
    shares[0] = 1.0
    for rank in doubled:
        moved = np.zeros_like(shares)
        moved[rank:] = shares[:-rank]
        shares = (shares + moved) / 2
    return 2 * float(shares[: round(2 * statistic) + 1].sum())


def holm(p_values: ArrayLike) -> FloatArray:
    """Adjust p-values so that any false discovery among them is as rare as was asked.

    Parameters
    ----------
    p_values : float [m]
        NaN ones stay NaN and are not counted as comparisons.

    Returns
    -------
    float64 [m], in [0, 1]
        Whatever the dependence between the comparisons; `max_t` uses it, and is sharper.

    References
    ----------
    Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian
    Journal of Statistics 6, 65-70.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).round(6).tolist()
    [0.03, 0.06, 0.06]
    """
    given = np.asarray(p_values, np.float64)
    adjusted = np.full(given.shape, np.nan)
    defined = np.flatnonzero(~np.isnan(given))
    order = defined[np.argsort(given[defined], kind="stable")]
    steps = given[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(steps))
    return adjusted


def max_t(differences: FloatArray, resampled: FloatArray) -> FloatArray:
    """Two-sided p-values of many paired differences, adjusted by their own dependence.

    Comparisons that share a model, or users, go up and down together in resamples that are
    shared; the greatest of them all then says how large one may be by luck.

    Parameters
    ----------
    differences : float [m]
        Mean differences; NaN ones stay NaN.
    resampled : float [resamples, m]
        The same in shared resamples of the users; those with any NaN in a defined column
        are left out.

    Returns
    -------
    float64 [m], in [1 / (resamples + 1), 1]
        Step-down: in order of the differences in units of their standard errors, and never
        smaller than one before it. Below a difference that never varies stands 1 if it is
        0. NaN if there are fewer than two resamples.

    References
    ----------
    Romano and Wolf (2005), Exact and approximate stepdown methods for multiple hypothesis
    testing, doi:10.1198/016214504000000539. Romano and Wolf (2016), Efficient computation
    of adjusted p-values, doi:10.1016/j.spl.2016.02.012.
    """
    adjusted = np.full(len(differences), np.nan)
    defined = np.flatnonzero(~np.isnan(differences))
    drawn = resampled[:, defined]
    drawn = drawn[~np.isnan(drawn).any(axis=1)]
    if len(drawn) < 2:
        return adjusted
    observed = np.abs(differences[defined])
    drawn = np.abs(drawn - differences[defined])
    spread = np.sqrt((drawn**2).mean(axis=0))
    varies = spread > 1e-12 * observed
    scale = np.where(varies, spread, 1.0)
    statistic = np.where(varies, observed / scale, np.where(observed > 0, np.inf, 0.0))
    drawn = np.where(varies, drawn / scale, 0.0)
    order = np.argsort(-statistic, kind="stable")
    # The greatest of those not yet decided, from the last to the first.
    greatest = np.maximum.accumulate(drawn[:, order[::-1]], axis=1)[:, ::-1]
    as_large = np.count_nonzero(greatest >= statistic[order], axis=0)
    steps = (1 + as_large) / (1 + len(drawn))
    adjusted[defined[order]] = np.maximum.accumulate(steps)
    return adjusted
