"""Means and ratios with closed-form intervals, over users or over cards and days of one user.

Intervals are the wider, on each side, of Student's t and Hall's t, which allows for skewness.
No random numbers are drawn. Simulated coverage is in docs/intervals.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import stdtr, stdtrit

from srs_eval.nouns import FloatArray, IntArray
from srs_eval.stats.significance import LEVEL

# Differences smaller than this share of the scores are rounding.
ROUNDING = 1e-12
# Below ENOUGH_USERS, intervals of a model that fails for a few users have too low a coverage.
ENOUGH_USERS = 10
# Below two users of equal weight, one user outweighs all others together.
FEWEST_EFFECTIVE = 2 - 1e-9


@dataclass(frozen=True)
class Estimate:
    """A mean with its standard error, skewness and degrees of freedom.

    Intervals and p-values allow for skewness by the transformation of Hall (1992), On the removal
    of skewness by transformation, Journal of the Royal Statistical Society B 54, 221-228.
    """

    mean: float  # NaN if there are no values
    # Standard error; NaN where it cannot be estimated, 0 where all values are the same
    se: float = math.nan
    # Skewness of the mean: that of the values, divided by the root of their number
    skewness: float = math.nan
    df: float = math.nan  # Degrees of freedom of Student's t, not always whole

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Compute the interval of the mean; NaN without a standard error.

        It excludes 0 exactly if `p_value` is below 1 - `level`.
        """
        if math.isnan(self.se):
            return math.nan, math.nan
        if self.se == 0:
            return self.mean, self.mean
        t = -float(stdtrit(self.df, (1 - level) / 2))
        lo = self.mean - max(t, float(hall(t, self.skewness))) * self.se
        return lo, self.mean + max(t, -float(hall(-t, self.skewness))) * self.se

    @cached_property
    def p_value(self) -> float:
        """Two-sided p-value of a mean of 0; NaN without a standard error."""
        if math.isnan(self.se):
            return math.nan
        if self.se == 0:
            return 1.0 if self.mean == 0 else 0.0
        z, a = self.mean / self.se, self.skewness
        h = z + a * (z * z / 3 + 1 / 6) + a * a * z**3 / 27
        if z * h <= 0:
            return 1.0
        return 2 * float(stdtr(self.df, -min(abs(z), abs(h))))

    @property
    def is_zero(self) -> bool:
        """Whether all values are 0."""
        return self.se == 0 and self.mean == 0

    def mirrored(self) -> Estimate:
        """Return the estimate of the negated values."""
        return Estimate(0.0 - self.mean, self.se, -self.skewness, self.df)


def mean_of_users(
    values: FloatArray, weights: FloatArray | None = None, *, size: float | None = None
) -> Estimate:
    """Estimate the population mean from scores of users, or differences of scores, [n_users].

    Weights are at least 0, and the same by default. Users with NaN or with weight 0 are left out.
    To recognise rounding errors, `size` is the largest absolute score that differences were taken
    of; by default, the largest absolute value.

    >>> found = mean_of_users(np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    >>> [round(bound, 4) for bound in found.interval()], round(found.p_value, 4)
    ([-0.2556, 6.2556], 0.0132)
    """
    given = np.ones(len(values)) if weights is None else weights
    return ratio_of_sums(np.where(given > 0, values * given, 0.0), given, size=size)


def ratio_of_sums(above: FloatArray, below: FloatArray, *, size: float | None = None) -> Estimate:
    """Estimate the ratio of two sums over rows by the jackknife, sum(above) / sum(below).

    Both are [n_rows], and `below` is at least 0; rows with NaN, and rows with 0 in both, are left
    out. `size` is as in `mean_of_users`, of ratios. There is no standard error with fewer than two
    rows, or if one row outweighs all others: sum(below)**2 / sum(below**2) is below 2. The degrees
    of freedom are that number less one.
    """
    return _ratio(above, below, size, fewest=FEWEST_EFFECTIVE)


def ratio_of_clustered_sums(
    above: FloatArray, below: FloatArray, *clusters: IntArray, size: float | None = None
) -> Estimate:
    """Estimate a ratio of sums over reviews, [n_reviews], that are clustered in several ways.

    Each of `clusters` has the cluster of each review, such as its card, or its day. A mean is the
    ratio with 1 throughout `below`; `size` is as in `mean_of_users`. There is no standard error if
    any kind has fewer than two clusters.

    The variances by each kind of cluster are added up. That counts what reviews of the same card
    and day have in common twice, which makes intervals a little too wide. See Cameron, Gelbach and
    Miller (2011), Robust inference with multiway clustering, Journal of Business & Economic
    Statistics 29, 238-249.
    """
    if not len(above) or below.sum() <= 0:
        return Estimate(math.nan)
    mean = float(above.sum() / below.sum())
    if size is None:
        size = float(np.abs(above).max())
    found = []
    for cluster in clusters:  # the jackknife over clusters; one may be larger than all others
        _, code = np.unique(cluster, return_inverse=True)
        tops, bottoms = (np.bincount(code, each).astype(np.float64) for each in (above, below))
        found.append(_ratio(tops, bottoms, size, fewest=1.0))
    if not found or any(math.isnan(one.se) for one in found):
        return Estimate(mean)
    variances = np.array([one.se**2 for one in found])
    variance = float(variances.sum())
    if variance == 0:
        return _constant(mean, size, found[0].df)
    third_moments = variances**1.5 @ np.array([one.skewness for one in found])
    df = variance**2 / float((variances**2 / np.array([one.df for one in found])).sum())
    return Estimate(mean, math.sqrt(variance), float(third_moments) / variance**1.5, df)


def clustered_mean(values: FloatArray, *clusters: IntArray, size: float | None = None) -> Estimate:
    """Estimate a mean over reviews: see `ratio_of_clustered_sums`."""
    return ratio_of_clustered_sums(values, np.ones(len(values)), *clusters, size=size)


def _ratio(above: FloatArray, below: FloatArray, size: float | None, *, fewest: float) -> Estimate:
    held = ~np.isnan(above) & ~np.isnan(below) & ((above != 0) | (below != 0))
    if not held.all():
        above, below = above[held], below[held]
    total = float(below.sum())
    if total <= 0:
        return Estimate(math.nan)
    mean = float(above.sum() / total)
    shares = below / total
    effective = 1 / float(shares @ shares)
    if len(above) < 2 or effective < fewest or shares.max() == 1:
        return Estimate(mean)
    df = max(effective - 1, 1.0)
    if size is None:
        size = float(np.abs(above[below > 0] / below[below > 0]).max())
    # Change of the ratio without each row.
    moves = (above / total - mean * shares) / (1 - shares)
    squares = float(moves @ moves)
    se = math.sqrt((len(above) - 1) / len(above) * squares)
    if se <= ROUNDING * size:
        return _constant(mean, size, df)
    return Estimate(mean, se, float(moves @ moves**2) / squares**1.5, df)


def _constant(mean: float, size: float, df: float) -> Estimate:
    return Estimate(mean if abs(mean) > ROUNDING * size else 0.0, 0.0, 0.0, df)


def hall(t: float, a: FloatArray | float) -> FloatArray:
    """Invert Hall's transformation of t statistics whose skewness is `a`."""
    is_small = np.abs(a) < 1e-6
    safe = np.where(is_small, 1.0, a)
    found = 3 / safe * (np.cbrt(1 + safe * (t - safe / 6)) - 1)
    return np.where(is_small, t - a * (t * t / 3 + 1 / 6), found)
