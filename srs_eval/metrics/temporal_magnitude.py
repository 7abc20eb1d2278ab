"""How far forgetting curves rise and fall, and what their elapsed time is worth.

A share of pairs measures how often a curve rises; these metrics measure by how much. Only
`TemporalPermutation` uses outcomes, so a curve of the wrong shape cannot pass it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from srs_eval.metrics.curve_rows import CurveMetric
from srs_eval.metrics.proper import log_losses
from srs_eval.metrics.temporal import curve_drops, pairs_of_times, share_of
from srs_eval.nouns import BoolArray, Curves, FloatArray, Predictions

# Curves fitted together: few enough that their arrays stay in the cache.
_BLOCK = 1024


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


class TemporalRise(CurveMetric):
    """Mean rise of predicted recall from the earlier to the later of two different times.

    Pairs at which recall falls count as 0.
    """

    name, better = "temporal_rise", "lower"
    bounds = (0.0, 1.0)

    def per_curve(self, curves: Curves, reviews: Predictions) -> FloatArray:
        risen, pairs = np.zeros((2, len(curves.p)))
        for rise, mass, _ in pairs_of_times(curves):
            risen += np.where(rise > 0, rise * mass, 0).sum(axis=1)
            pairs += mass.sum(axis=1)
        return share_of(risen, pairs)


class TemporalMaxRise(CurveMetric):
    """Greatest rise of predicted recall from an earlier to a later time, a mean over curves."""

    name, better = "temporal_max_rise", "lower"
    bounds = (0.0, 1.0)

    def per_curve(self, curves: Curves, reviews: Predictions) -> FloatArray:
        shown = np.where(curves.weight > 0, curves.p.astype(np.float64), np.nan)
        lowest = np.fmin.accumulate(shown, axis=1)
        greatest = np.fmax.reduce(shown - lowest, axis=1, initial=0.0)
        return np.where(_at_several_times(curves), greatest, np.nan)


class TemporalIsotonic(CurveMetric):
    """Mean distance from the nearest curve that never rises.

    Times weigh as much as the share of intervals that each stands for.
    """

    name, better = "temporal_isotonic", "lower"
    bounds = (0.0, 1.0)

    def per_curve(self, curves: Curves, reviews: Predictions) -> FloatArray:
        distances = np.empty(len(curves.p))
        for begin in range(0, len(distances), _BLOCK):
            rows = slice(begin, begin + _BLOCK)
            p, weight = curves.p[rows].astype(np.float64), curves.weight[rows]
            away = np.abs(p - falling_fit(p, weight))
            above = np.where(weight > 0, weight * away, 0).sum(axis=1)
            distances[rows] = share_of(above, weight.sum(axis=1))
        return np.where(_at_several_times(curves), distances, np.nan)


@dataclass(frozen=True, slots=True)
class TemporalDrop(CurveMetric):
    """Mean fall of predicted recall from a short to a long interval: see `curve_drops`.

    No direction is better: how far recall falls depends on the intervals of the user. Near
    0 means that the model has given up on forgetting.

    Parameters
    ----------
    low, high : float
        Which quantiles of the intervals are short and long.
    """

    low: float = 0.05
    high: float = 0.95
    name, better = "temporal_drop", "neither"
    bounds = (-1.0, 1.0)

    def per_curve(self, curves: Curves, reviews: Predictions) -> FloatArray:
        return curve_drops(curves, low=self.low, high=self.high)


class TemporalPermutation(CurveMetric):
    """Permutation importance of the elapsed time, in nats per review.

    Log loss expected if elapsed times were exchanged, minus that at the true ones. Each review
    is given the elapsed time of another review instead of its own, and its own outcome. No times
    are drawn: this is the expectation over all of them. Predictions are clipped as in `LogLoss`.

    Higher is better; 0 or less means that the model would have predicted as well with the
    elapsed times of other reviews.

    References
    ----------
    Fisher, Rudin and Dominici (2019), All models are wrong, but many are useful,
    arXiv:1801.01489: the importance of a variable by exchanging it.
    """

    name, better = "temporal_permutation", "higher"

    def per_curve(self, curves: Curves, reviews: Predictions) -> FloatArray:
        at_times = log_losses(curves.p, reviews.recalled[:, None])
        weighted = np.where(curves.weight > 0, curves.weight * at_times, 0).sum(axis=1)
        expected = share_of(weighted, curves.weight.sum(axis=1))
        gained = expected - log_losses(reviews.p, reviews.recalled)
        return np.where(_at_several_times(curves), gained, np.nan)
