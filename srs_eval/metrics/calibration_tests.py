"""Tests of calibration that need no bins: Spiegelhalter's z, and cumulative differences.

The p-values take reviews as independent, and hold for many of them. With enough reviews
every model of memory fails such tests: the size of the error says more than the p-value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from srs_eval.metrics.sketch import Sketch, SketchMetric, alone
from srs_eval.metrics.tally import Tally, tally
from srs_eval.metrics.validate import paired
from srs_eval.nouns import Better, FloatArray

# Brownian motion goes further than this, but for a chance below 1e-50.
SURELY_MORE = 0.1


@dataclass(frozen=True, slots=True)
class CumulativeDifferences:
    """Extremes of the running sum of outcome minus prediction, in order of prediction.

    Attributes
    ----------
    kuiper : float
        Range of the running sum as a share of the reviews, in [0, 1]: the largest error, in
        recalls per review of all, over any stretch of predictions (ECCE-R).
    ks : float
        Largest absolute value of the same: over any stretch that begins at 0 (ECCE-MAD).
    scale : float
        Standard deviation of the whole sum, as a share of the reviews, if the predictions
        are true.
    kuiper_p, ks_p : float
        Chance of so large a value, or a larger one, if the predictions are true; NaN where
        all predictions are 0 or 1.
    """

    kuiper: float
    ks: float
    scale: float
    kuiper_p: float
    ks_p: float


def spiegelhalter_z(p: ArrayLike, recalled: ArrayLike) -> float:
    """Spiegelhalter's z: the Brier score less its expectation, in standard deviations.

    Parameters
    ----------
    p : float [n], in [0, 1]
        Predicted probability of recall.
    recalled : bool [n]
        Outcome.

    Returns
    -------
    float
        Standard normal if the predictions are true; best at 0. Above 0 the Brier score is
        higher than true predictions would have it. NaN if all predictions are 0, 1/2 or 1,
        or n is 0.

    References
    ----------
    Spiegelhalter (1986), doi:10.1002/sim.4780050506.

    Examples
    --------
    >>> round(spiegelhalter_z([0.9, 0.8, 0.7, 0.6], [1, 1, 1, 0]), 6)
    -0.502519
    """
    return alone(SpiegelhalterZ(), p, recalled)


def spiegelhalter_p_value(p: ArrayLike, recalled: ArrayLike) -> float:
    """Chance of a z as far from 0 on either side, if the predictions are true.

    Examples
    --------
    >>> round(spiegelhalter_p_value([0.9, 0.8, 0.7, 0.6], [1, 1, 1, 0]), 6)
    0.615303
    """
    return float(2 * ndtr(-abs(spiegelhalter_z(p, recalled))))


def cumulative_differences(p: ArrayLike, recalled: ArrayLike) -> CumulativeDifferences:
    """Add up outcome minus prediction from the lowest prediction to the highest.

    Equal predictions are added at once, so that their order cannot matter.

    Parameters
    ----------
    p : float [n], in [0, 1]
        Predicted probability of recall.
    recalled : bool [n]
        Outcome.

    Returns
    -------
    CumulativeDifferences
        NaN throughout if n is 0.

    Raises
    ------
    ScoreError
        If the predictions cannot be scored.

    References
    ----------
    Arrieta-Ibarra, Gujral, Tannen, Tygert and Xu (2022), arXiv:2205.09680; Tygert (2022),
    arXiv:2202.00100.

    Examples
    --------
    >>> found = cumulative_differences([0.9, 0.8, 0.7, 0.6], [1, 1, 1, 0])
    >>> round(found.kuiper, 6), round(found.ks, 6), round(found.kuiper_p, 6)
    (0.15, 0.15, 0.998886)
    """
    return cumulative_of(tally(*paired(p, recalled)))


def z_of(counted: Tally) -> float:
    """Spiegelhalter's z of a tally: see `spiegelhalter_z`."""
    p = counted.p
    tilt = 1 - 2 * p
    variance = float((tilt * tilt * p * (1 - p)) @ counted.count)
    if not variance > 0:
        return math.nan
    return -float(counted.residual @ tilt) / math.sqrt(variance)


def cumulative_of(counted: Tally) -> CumulativeDifferences:
    """Cumulative differences of a tally: see `cumulative_differences`."""
    n = counted.n
    if not n > 0:
        return CumulativeDifferences(math.nan, math.nan, math.nan, math.nan, math.nan)
    walk = np.cumsum(counted.residual)
    # It begins at 0.
    low, high = min(0.0, float(walk.min())) / n, max(0.0, float(walk.max())) / n
    kuiper, ks = high - low, max(high, -low)
    scale = math.sqrt(float((counted.p * (1 - counted.p)) @ counted.count)) / n
    if not scale > 0:
        return CumulativeDifferences(kuiper, ks, scale, math.nan, math.nan)
    p_values = _range_tail(kuiper / scale), _absolute_tail(ks / scale)
    return CumulativeDifferences(kuiper, ks, scale, *p_values)


def _absolute_tail(x: float) -> float:
    """Chance that a standard Brownian motion on [0, 1] ever leaves [-x, x]."""
    if x < SURELY_MORE:
        return 1.0
    odd = 2 * np.arange(50.0) + 1
    sign = np.where(odd % 4 == 1, 1.0, -1.0)
    # Two series for one number: the first has few terms for small x, the second for large x.
    if x < 1:
        terms = (4 / math.pi) * sign / odd * np.exp(-((odd * math.pi / x) ** 2) / 8)
        return _in_unit(np.r_[1.0, -terms])
    return _in_unit(4 * sign * ndtr(-odd * x))


def _range_tail(x: float) -> float:
    """Chance that a standard Brownian motion on [0, 1] has a range beyond x."""
    if x < SURELY_MORE:
        return 1.0
    whole = np.arange(1.0, 51.0)
    if x < 1:
        squares = (2 * whole - 1) ** 2
        terms = (8 / x**2 + 8 / (squares * math.pi**2)) * np.exp(-squares * math.pi**2 / (2 * x**2))
        return _in_unit(np.r_[1.0, -terms])
    sign = np.where(whole % 2 == 1, 1.0, -1.0)
    return _in_unit(8 * sign * whole * ndtr(-x * whole))


def _in_unit(terms: FloatArray) -> float:
    """Sum of a series that is a probability."""
    return min(1.0, max(0.0, float(terms.sum())))


@dataclass(frozen=True, slots=True)
class SpiegelhalterZ(SketchMetric):
    """Excess of the Brier score in standard deviations: see `spiegelhalter_z`."""

    name: ClassVar[str] = "spiegelhalter_z"
    better: ClassVar[Better] = "zero"
    section: ClassVar[str] = "calibration"
    bounds: ClassVar[tuple[float, float]] = (-math.inf, math.inf)

    def of(self, sketch: Sketch) -> float:
        """Compute the metric."""
        return z_of(sketch.tally)


@dataclass(frozen=True, slots=True)
class EcceKuiper(SketchMetric):
    """Range of the cumulative differences: see `CumulativeDifferences`."""

    name: ClassVar[str] = "ecce_kuiper"
    better: ClassVar[Better] = "lower"
    section: ClassVar[str] = "calibration"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def of(self, sketch: Sketch) -> float:
        """Compute the metric."""
        return sketch.derived(cumulative_of).kuiper


@dataclass(frozen=True, slots=True)
class EcceKs(SketchMetric):
    """Largest of the cumulative differences: see `CumulativeDifferences`."""

    name: ClassVar[str] = "ecce_ks"
    better: ClassVar[Better] = "lower"
    section: ClassVar[str] = "calibration"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def of(self, sketch: Sketch) -> float:
        """Compute the metric."""
        return sketch.derived(cumulative_of).ks
