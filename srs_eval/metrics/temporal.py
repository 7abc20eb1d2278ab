"""The temporal check: predicted recall should fall as time passes.

Each sampled review has a forgetting curve at the elapsed times that occur in the same
reviews. Pairs of different times are drawn from that distribution; a pair violates the
expectation where recall is not predicted to be lower at the later time. A model that has
given up on forgetting predicts the same at both, so flat pairs are violations too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from srs_eval.errors import ConfigError
from srs_eval.nouns import Better, BoolArray, Curves, FloatArray, Predictions

Kind = Literal["violation", "strict", "flat", "tolerant"]
# Whether pairs of times violate the expectation: rise of recall [n, k], earlier time
# [n, 1] in days, and the difference that counts as none. NaN never does.
VIOLATIONS: Mapping[Kind, Callable[[FloatArray, FloatArray, float], BoolArray]] = {
    "violation": lambda rise, earlier, none: rise >= -none,
    "strict": lambda rise, earlier, none: rise > none,
    "flat": lambda rise, earlier, none: np.abs(rise) <= none,
    "tolerant": lambda rise, earlier, none: rise > 0.02 * np.exp(-earlier) + none,
}
# What is equal but for rounding, in the precision the curves were computed in.
FINE, COARSE = 1e-9, 1e-6


def sample_elapsed(elapsed_days: ArrayLike, *, k: int = 16) -> tuple[FloatArray, FloatArray]:
    """Choose elapsed times that stand for all the intervals of some reviews.

    Parameters
    ----------
    elapsed_days : float [n], at least 0
        Intervals of the reviews that are scored; NaN and negative ones are left out.
    k : int
        At most this many times.

    Returns
    -------
    times : float64 [m], m <= k, increasing
        All the different intervals if there are at most k, else those at the middles of
        k equal parts of the sorted intervals, equal ones joined.
    weights : float64 [m]
        Share of the intervals each time stands for; they sum to 1.

    Examples
    --------
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


def temporal_rates(
    curves: Curves, kind: Kind = "violation", *, atol: float | None = None
) -> FloatArray:
    """Share of the pairs of times at which each curve violates the expectation.

    Parameters
    ----------
    curves : Curves
        Predicted recall at increasing elapsed times.
    kind : str
        ``strict``: recall rises; ``flat``: it stays; ``violation``: either;
        ``tolerant``: it rises by more than 0.02 exp(-t), t being the earlier time in days.
    atol : float, optional
        Differences up to this count as none; 1e-9 in float64 and 1e-6 below it by default.

    Returns
    -------
    float64 [n]
        In [0, 1]; NaN for a curve at fewer than two times.
    """
    rounding = FINE if curves.p.dtype.itemsize >= 8 else COARSE
    allowed = rounding if atol is None else atol
    violated = np.zeros(len(curves.p))
    pairs = np.zeros(len(curves.p))
    for first in range(curves.p.shape[1] - 1):
        later = slice(first + 1, None)
        rise = curves.p[:, later] - curves.p[:, first, None]
        # Missing times weigh nothing; their predictions may be anything.
        mass = curves.weight[:, first, None] * curves.weight[:, later]
        wrong = VIOLATIONS[kind](rise, curves.elapsed[:, first, None], allowed)
        violated += np.where(wrong, mass, 0).sum(axis=1)
        pairs += mass.sum(axis=1)
    rates: FloatArray = np.full(len(pairs), np.nan)
    np.divide(violated, pairs, out=rates, where=pairs > 0)
    return rates


def curve_drops(curves: Curves, *, low: float = 0.05, high: float = 0.95) -> FloatArray:
    """Predicted recall at a short interval minus that at a long one, for each curve.

    Parameters
    ----------
    low, high : float
        Which quantiles of the intervals are short and long.

    Returns
    -------
    float64 [n], in [-1, 1]
    """
    reached = np.cumsum(curves.weight, axis=1)
    last = np.maximum((curves.weight > 0).sum(axis=1) - 1, 0)
    every = np.arange(len(curves.p))
    short, long = (np.minimum((reached < share - 1e-12).sum(axis=1), last) for share in (low, high))
    drops: FloatArray = curves.p[every, short].astype(np.float64) - curves.p[every, long]
    return drops


@dataclass(frozen=True, slots=True)
class Temporal:
    """Mean share of pairs of elapsed times that violate the expectation of forgetting.

    Parameters
    ----------
    kind : str
        ``violation`` (the headline), ``strict``, ``flat`` or ``tolerant``: see
        `temporal_rates`.
    atol : float, optional
        Differences up to this count as none; 1e-9 in float64 and 1e-6 below it by default.
    """

    kind: Kind = "violation"
    atol: float | None = None
    better: ClassVar[Better] = "lower"
    section: ClassVar[str] = "time"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __post_init__(self) -> None:
        """Refuse what is not a kind of violation."""
        if self.kind not in VIOLATIONS:
            raise ConfigError(f"temporal check {self.kind!r} is not one of {', '.join(VIOLATIONS)}")

    @property
    def name(self) -> str:
        """``temporal_`` and the kind."""
        return f"temporal_{self.kind}"

    def per_curve(self, curves: Curves) -> FloatArray:
        """Score each curve on its own [n]; NaN where it is at fewer than two times."""
        return temporal_rates(curves, self.kind, atol=self.atol)

    def __call__(self, predictions: Predictions) -> float:
        """Score the predictions; NaN if they have no forgetting curves."""
        if predictions.curves is None:
            return math.nan
        rates = self.per_curve(predictions.curves)
        defined = rates[~np.isnan(rates)]
        return float(defined.mean()) if len(defined) else math.nan


@dataclass(frozen=True, slots=True)
class TemporalCollapsed:
    """Share of forgetting curves that hardly fall from short to long intervals.

    Parameters
    ----------
    drop : float
        A curve has collapsed if it falls by less than this between the 5 % and the 95 %
        quantile of the intervals.
    """

    drop: float = 0.01
    name: ClassVar[str] = "temporal_collapsed"
    better: ClassVar[Better] = "lower"
    section: ClassVar[str] = "time"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def per_curve(self, curves: Curves) -> FloatArray:
        """Score each curve on its own [n]; NaN where it is at fewer than two times."""
        collapsed = (curve_drops(curves) < self.drop).astype(np.float64)
        return np.where((curves.weight > 0).sum(axis=1) > 1, collapsed, np.nan)

    def __call__(self, predictions: Predictions) -> float:
        """Score the predictions; NaN if they have no forgetting curves."""
        if predictions.curves is None:
            return math.nan
        collapsed = self.per_curve(predictions.curves)
        defined = collapsed[~np.isnan(collapsed)]
        return float(defined.mean()) if len(defined) else math.nan
