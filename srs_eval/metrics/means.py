"""Means and ratios with intervals in closed form: over users, or cards and days of one user.

Users differ more than models do, so models are compared within each user. Intervals are the wider,
on each side, of Student's t and Hall's t, which allows for skewness. No random numbers are drawn.
Simulated coverage is in docs/intervals.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr, stdtrit

from srs_eval.data.reviews import FloatArray, IntArray
from srs_eval.errors import ConfigError
from srs_eval.metrics.metric import UNBOUNDED
from srs_eval.metrics.significance import LEVEL, SignTest

Weighting = Literal["users", "reviews", "log_reviews"]

# Differences smaller than this share of the scores are rounding.
ROUNDING = 1e-12
UNKNOWN = (math.nan, math.nan)
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
        t = -float(stdtrit(self.df, (1 - level) / 2))
        lo = self.mean - max(t, _hall(t, self.skewness)) * self.se
        return lo, self.mean + max(t, -_hall(-t, self.skewness)) * self.se

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

    >>> mean = mean_of_users(np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    >>> [round(bound, 4) for bound in mean.interval()], round(mean.p_value, 4)
    ([-0.2556, 6.2556], 0.0132)
    """
    weights = np.ones(len(values)) if weights is None else weights
    return ratio_of_sums(np.where(weights > 0, values * weights, 0.0), weights, size=size)


def ratio_of_sums(
    above: FloatArray,
    below: FloatArray,
    *,
    size: float | None = None,
    fewest: float = FEWEST_EFFECTIVE,
) -> Estimate:
    """Estimate the ratio of two sums over rows by the jackknife, sum(above) / sum(below).

    Both are [n_rows], and `below` is at least 0; rows with NaN, and rows with 0 in both, are left
    out. `size` is as in `mean_of_users`, of ratios. There is no standard error with fewer than two
    rows, or if one row outweighs all others: sum(below)**2 / sum(below**2) is below `fewest`. The
    degrees of freedom are that number less one.
    """
    present = ~np.isnan(above) & ~np.isnan(below) & ((above != 0) | (below != 0))
    if not present.all():
        above, below = above[present], below[present]
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


def clustered_mean(values: FloatArray, *clusters: IntArray, size: float | None = None) -> Estimate:
    """Estimate a mean over reviews, [n_reviews], that are clustered in several ways.

    Each of `clusters` has the cluster of each review, such as its card, or its day. `size` is as in
    `mean_of_users`. There is no standard error if any kind has fewer than two clusters.

    The variances by each kind of cluster are added up. That counts what reviews of the same card
    and day have in common twice, which makes intervals a little too wide. See Cameron, Gelbach and
    Miller (2011), Robust inference with multiway clustering, Journal of Business & Economic
    Statistics 29, 238-249.
    """
    if not len(values):
        return Estimate(math.nan)
    mean = float(values.mean())
    size = float(np.abs(values).max()) if size is None else size
    parts = []
    for cluster in clusters:  # the jackknife over clusters; one may be larger than all others
        _, code = np.unique(cluster, return_inverse=True)
        sums = np.bincount(code, values).astype(np.float64)
        parts.append(ratio_of_sums(sums, np.bincount(code) * 1.0, size=size, fewest=1.0))
    if not parts or any(math.isnan(part.se) for part in parts):
        return Estimate(mean)
    variances = np.array([part.se**2 for part in parts])
    variance = float(variances.sum())
    if variance == 0:
        return _constant(mean, size, parts[0].df)
    third_moments = variances**1.5 @ np.array([part.skewness for part in parts])
    df = variance**2 / float((variances**2 / np.array([part.df for part in parts])).sum())
    return Estimate(mean, math.sqrt(variance), float(third_moments) / variance**1.5, df)


def _constant(mean: float, size: float, df: float) -> Estimate:
    return Estimate(mean if abs(mean) > ROUNDING * size else 0.0, 0.0, 0.0, df)


def _hall(t: float, a: float) -> float:
    """Invert Hall's transformation of a t statistic whose skewness is `a`."""
    if abs(a) < 1e-6:
        return t - a * (t * t / 3 + 1 / 6)
    return 3 / a * (float(np.cbrt(1 + a * (t - a / 6))) - 1)


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
    total = float(weights.sum())
    if total <= 0:
        return math.nan
    shares = weights / total
    return 1 / float(shares @ shares)


def paired_signs(a: FloatArray, b: FloatArray) -> SignTest:
    """Count the users for whom the first model has the lower loss, the higher, and the same.

    >>> counts = paired_signs(np.zeros(8), np.full(8, 0.1))
    >>> counts.better, counts.p_value
    (8, 0.0078125)
    """
    difference = a - b
    largest = np.where(np.isnan(difference), 0.0, np.maximum(np.abs(a), np.abs(b)))
    rounding = ROUNDING * float(largest.max(initial=0.0))
    better = int(np.count_nonzero(-difference > rounding))
    worse = int(np.count_nonzero(difference > rounding))
    return SignTest(better, worse, int(np.count_nonzero(~np.isnan(difference))) - better - worse)


@dataclass(frozen=True, slots=True)
class MetricSummary:
    """One metric over users."""

    mean_users: float  # Mean over users, each counting the same: the typical user
    # Mean over users weighted by their scored reviews: the typical review, where the metric is a
    # mean over reviews
    mean_reviews: float
    pooled: float  # The metric of all users' predictions put together
    # 99 % interval of `mean_users` (over cards and days, if there is one user), within the bounds
    # of the metric; NaN where it cannot be computed
    lo: float
    hi: float
    n_users: int  # Users with a defined score
    # Effective sample size of `mean_reviews`: the number of equally large users with the same
    # variance. It is small if a few users have most of the reviews
    n_effective: float = math.nan
    # 99 % interval of `pooled` from resampling users; NaN where it cannot be had
    pooled_lo: float = math.nan
    pooled_hi: float = math.nan


def summarise(
    names: Sequence[str],
    scores: FloatArray,
    n_reviews: IntArray,
    pooled: Mapping[str, float],
    *,
    pooled_intervals: Mapping[str, tuple[float, float]] | None = None,
    single_user: Mapping[str, tuple[float, float]] | None = None,
    bounds: Mapping[str, tuple[float, float]] = MappingProxyType({}),
) -> dict[str, MetricSummary]:
    """Summarise the scores of many users, each metric over the users it is defined for.

    `scores` are [n_users, n_metrics], NaN where a metric is not defined for that user; `n_reviews`
    are the scored reviews of each user. `pooled` has each metric on all predictions together, and
    `pooled_intervals` their (lo, hi). `single_user` has the intervals if there is only one user:
    see `cluster_intervals`. `bounds` are the range of each metric, without limits by default.

    >>> scores = np.array([[0.3], [0.5]])
    >>> row = summarise(["log_loss"], scores, np.array([300, 100]), {"log_loss": 0.35})
    >>> round(row["log_loss"].mean_users, 6), round(row["log_loss"].mean_reviews, 6)
    (0.4, 0.35)
    """
    summaries = {}
    for name, column in zip(names, np.asarray(scores, np.float64).T, strict=True):
        defined = ~np.isnan(column)
        weight, values = n_reviews[defined].astype(np.float64), column[defined]
        interval = (single_user or {}).get(name, UNKNOWN)
        if len(column) > 1:
            interval = clipped(mean_of_users(column).interval(), bounds.get(name, UNBOUNDED))
        summaries[name] = MetricSummary(
            float(values.mean()) if len(values) else math.nan,
            float(values @ weight / weight.sum()) if weight.any() else math.nan,
            float(pooled.get(name, math.nan)),
            *interval,
            len(values),
            effective_users(weight),
            *(pooled_intervals or {}).get(name, UNKNOWN),
        )
    return summaries


def clipped(interval: tuple[float, float], bounds: tuple[float, float]) -> tuple[float, float]:
    """Cut an interval of a mean off at the bounds of its metric; NaN stays NaN."""
    lo, hi = np.clip(interval, *bounds).tolist()
    return lo, hi
