"""How far forgetting curves rise, and the nearest curves that do not.

A share of pairs measures how often a curve rises; this measures by how much.
"""

from __future__ import annotations

import numpy as np

from srs_eval.metrics.curve_rows import CurveMetric
from srs_eval.nouns import BoolArray, Curves, FloatArray, Predictions


def falling_fit(p: FloatArray, weight: FloatArray) -> FloatArray:
    """Fit the nearest curves [n, k] that never rise, by weighted least squares.

    Of use only where the weight is above 0. After Robertson, Wright and Dykstra (1988), Order
    restricted statistical inference, theorem 1.4.4: the fit at i is the greatest over ends e >= i
    of the least over starts s <= i of the mean from s to e.
    """
    n, k = p.shape
    mass = np.where(weight > 0, weight, 0).astype(np.float64)
    product = np.where(weight > 0, p * mass, 0)
    fitted = np.full((n, k), -np.inf)
    least = np.full((n, k), np.inf)
    for start in range(k):
        # Each start has sums of its own: differences of running sums would lose digits.
        sums = np.cumsum(product[:, start:], axis=1)
        held = np.cumsum(mass[:, start:], axis=1)
        means = np.zeros_like(sums)
        np.divide(sums, held, out=means, where=held > 0)
        np.minimum(least[:, start:], means, out=least[:, start:])
        fitted[:, start] = least[:, start:].max(axis=1)
    return fitted


def _at_several_times(curves: Curves) -> BoolArray:
    """Return which curves have two times or more [n]."""
    several: BoolArray = (curves.weight > 0).sum(axis=1) > 1
    return several


class TemporalMaxRise(CurveMetric):
    """Greatest rise of predicted recall from an earlier to a later time, a mean over curves."""

    name, better = "temporal_max_rise", "lower"
    bounds = (0.0, 1.0)

    def per_curve(self, curves: Curves, reviews: Predictions) -> FloatArray:
        shown = np.where(curves.weight > 0, curves.p.astype(np.float64), np.nan)
        lowest = np.fmin.accumulate(shown, axis=1)
        greatest = np.fmax.reduce(shown - lowest, axis=1, initial=0.0)
        return np.where(_at_several_times(curves), greatest, np.nan)
