"""Sign tests, intervals of shares, and p-values adjusted for multiple comparisons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr, betaincinv, ndtri

from srs_eval.data.reviews import FloatArray, IntArray

# The only significance level of the package, and the level of its intervals.
ALPHA = 0.01
LEVEL = 1 - ALPHA


def wilson_interval(
    successes: ArrayLike, n: ArrayLike, *, level: float = LEVEL
) -> tuple[FloatArray, FloatArray]:
    """Compute Wilson's intervals of shares, within [0, 1]; NaN if there are no trials.

    `successes` are in [0, n], numbers or arrays, and ties may count half; `level` is the share of
    intervals that should hold the true share. See Wilson (1927),
    doi:10.1080/01621459.1927.10502953.

    >>> [round(float(bound), 4) for bound in wilson_interval(8, 10, level=0.95)]
    [0.4902, 0.9433]
    """
    trials = np.where(np.asarray(n) > 0, n, np.nan)
    z = float(ndtri((1 + level) / 2))
    share = successes / trials
    middle = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    spread = np.sqrt(share * (1 - share) / trials + (z / (2 * trials)) ** 2)
    half = z * spread / (1 + z * z / trials)
    # At shares of 0 and 1 the bound is exactly that, but for rounding.
    return np.clip(middle - half, 0, share), np.clip(middle + half, share, 1)


def exact_interval(successes: float, n: float, *, level: float = LEVEL) -> tuple[float, float]:
    """Compute the interval of a share that holds it at least as often as `level` says.

    NaN if there are no trials. See Clopper and Pearson (1934), The use of confidence or fiducial
    limits illustrated in the case of the binomial, Biometrika 26, 404-413.

    >>> [round(bound, 4) for bound in exact_interval(0, 1, level=0.98)]
    [0.0, 0.99]
    """
    if not n > 0:
        return math.nan, math.nan
    tail, rest = (1 - level) / 2, n - successes
    lo = float(betaincinv(successes, rest + 1, tail)) if successes > 0 else 0.0
    hi = 1 - float(betaincinv(rest, successes + 1, tail)) if rest > 0 else 1.0
    return lo, hi


class SignTest(NamedTuple):
    """Counts of users for whom one model scores better than another, worse, or the same."""

    # Numbers of users
    better: int
    worse: int
    tied: int

    @property
    def p_value(self) -> float:
        """Two-sided exact p-value of a true share of 1/2; NaN without users."""
        differ = self.better + self.worse
        if not differ:
            return 1.0 if self.tied else math.nan
        return min(1.0, 2 * float(bdtr(min(self.better, self.worse), differ, 0.5)))


class Adjusted(NamedTuple):
    """p-values adjusted for multiple comparisons."""

    p_value: FloatArray  # [m]: Smallest level at which each comparison would be significant
    # [m]: Factor of each p-value at level `ALPHA`: p * factor is below `ALPHA` exactly if the
    # adjusted one is, and if the interval at level 1 - ALPHA / factor excludes the null value
    factor: IntArray


def holm(p_values: ArrayLike) -> Adjusted:
    """Adjust p-values, [m], by Holm's method, which controls the family-wise error rate.

    NaN ones stay NaN and are not counted as comparisons. See Holm (1979), A simple sequentially
    rejective multiple test procedure, Scandinavian Journal of Statistics 6, 65-70.

    >>> holm([0.01, 0.04, 0.03]).p_value.round(6).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, np.float64)
    adjusted = np.full(p.shape, np.nan)
    defined = np.flatnonzero(~np.isnan(p))
    order = defined[np.argsort(p[defined], kind="stable")]
    steps = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(steps))
    factor = np.full(p.shape, max(len(order), 1), np.int64)
    rejected = int(np.count_nonzero(adjusted < ALPHA))
    # The first comparison that is not significant stops the procedure for all after it.
    factor[order] = len(order) - np.minimum(np.arange(len(order)), rejected)
    return Adjusted(adjusted, np.maximum(factor, 1))


def behind_leader(
    p_values: Sequence[float],
    twin_of: Sequence[int | None],
    may_drop: Sequence[bool],
) -> Adjusted:
    """Adjust comparisons with the leader of a table, which was selected on the same scores.

    `p_values` are those of each model against the leader, in the order of the table. `twin_of` is
    the place of an earlier model with the same scores, which is counted once. `may_drop` says
    whether a significant difference means that the model is worse.

    Comparing the leader with the model ranked r is like taking the range of r models. So the factor
    is c (c + 1) / 2, where c counts the models ahead, the leader included, that have not been found
    worse. Models that rank behind do not count. Simulated, not proved: with 2 to 20 models of equal
    merit, any is called worse in at most 1.05 % of tables at a level of 1 %.

    >>> adjusted = behind_leader([1e-6, 0.04, 1e-9], [None] * 3, [True] * 3)
    >>> adjusted.factor.tolist()
    [1, 1, 3]
    """
    ahead = [1.0]  # adjusted p-values of different models, in falling order
    adjusted, factors = np.full(len(p_values), np.nan), np.ones(len(p_values), np.int64)
    for place, (p, twin) in enumerate(zip(p_values, twin_of, strict=True)):
        if twin is not None:
            adjusted[place], factors[place] = adjusted[twin], factors[twin]
            continue
        count = sum(value >= ALPHA for value in ahead)
        factors[place] = count * (count + 1) // 2
        if not math.isnan(p):
            after = [*ahead[1:], 0.0]
            levels = [max(c * (c + 1) / 2 * p, q) for c, q in enumerate(after, start=1)]
            adjusted[place] = min(1.0, *levels)
        dropped = may_drop[place] and not math.isnan(p)
        ahead = sorted([*ahead, float(adjusted[place]) if dropped else 1.0], reverse=True)
    return Adjusted(adjusted, factors)
