"""Calibration statistics without bins: Spiegelhalter's z, and cumulative differences."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from srs_eval.metrics.sketch import Sketch, SketchMetric
from srs_eval.metrics.tally import Tally


@dataclass(frozen=True, slots=True)
class CumulativeDifferences:
    """Extremes of the running sum of outcome minus prediction, in order of prediction.

    See Arrieta-Ibarra, Gujral, Tannen, Tygert and Xu (2022), arXiv:2205.09680; Tygert (2022),
    arXiv:2202.00100.
    """

    # Range of the running sum as a share of the reviews, in [0, 1]: the largest error, in recalls
    # per review of all, over any stretch of predictions (ECCE-R)
    kuiper: float
    ks: float  # Largest absolute value of the same: over any stretch that begins at 0 (ECCE-MAD)


def cumulative_of(counted: Tally) -> CumulativeDifferences:
    """Sum outcome minus prediction, from the lowest prediction to the highest.

    Equal predictions are added at once, so that their order cannot matter.
    """
    n = counted.n
    if not n > 0:
        return CumulativeDifferences(math.nan, math.nan)
    walk = np.cumsum(counted.residual)
    # The sum starts at 0.
    low, high = min(0.0, float(walk.min())) / n, max(0.0, float(walk.max())) / n
    return CumulativeDifferences(high - low, max(high, -low))


class SpiegelhalterZ(SketchMetric):
    """Spiegelhalter's z: the Brier score less its expectation, in standard deviations.

    Standard normal if the predictions are true; best at 0. Above 0 the Brier score is
    higher than true predictions would have it. NaN if all predictions are 0, 1/2 or 1.

    References
    ----------
    Spiegelhalter (1986), doi:10.1002/sim.4780050506.

    Examples
    --------
    >>> round(SpiegelhalterZ().of_outcomes([0.9, 0.8, 0.7, 0.6], [1, 1, 1, 0]), 6)
    -0.502519
    """

    name, better, section = "spiegelhalter_z", "zero", "calibration"

    def of(self, sketch: Sketch) -> float:
        counted, tilt = sketch.tally, 1 - 2 * sketch.tally.p
        variance = float((tilt * tilt * counted.p * (1 - counted.p)) @ counted.count)
        if not variance > 0:
            return math.nan
        return -float(counted.residual @ tilt) / math.sqrt(variance)


class EcceKuiper(SketchMetric):
    """Range of the cumulative differences: see `CumulativeDifferences`."""

    name, better, section = "ecce_kuiper", "lower", "calibration"
    bounds = (0.0, 1.0)

    def of(self, sketch: Sketch) -> float:
        return sketch.derived(cumulative_of).kuiper


class EcceKs(SketchMetric):
    """Largest of the cumulative differences: see `CumulativeDifferences`."""

    name, better, section = "ecce_ks", "lower", "calibration"
    bounds = (0.0, 1.0)

    def of(self, sketch: Sketch) -> float:
        return sketch.derived(cumulative_of).ks
