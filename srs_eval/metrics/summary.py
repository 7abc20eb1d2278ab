"""Summaries over users: mean over users, mean over reviews, and pooled."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from srs_eval.data.reviews import FloatArray, IntArray
from srs_eval.metrics.means import effective_users, mean_of_users
from srs_eval.metrics.metric import UNBOUNDED

UNKNOWN = (math.nan, math.nan)


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
    see `single_user_intervals`. `bounds` are the range of each metric, without limits by default.

    >>> import numpy as np
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
    lo, hi = (float(np.clip(bound, *bounds)) for bound in interval)
    return lo, hi
