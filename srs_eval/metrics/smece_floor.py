"""What SmoothECE would be if the predictions were true: noise, which never averages to 0.

With outcomes drawn from the predictions, the smoothed residual at t has the variance
v(t) = sum of p (1 - p) K(t, p)**2 / n**2. It is nearly Gaussian, so its absolute value is
sqrt(2 v(t) / pi) on average, and the floor is the bandwidth that equals the integral of
that. The square of a Gaussian kernel is a narrower Gaussian, and so the variance is a
smoothed field itself: no simulation is needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.fft import dct

from srs_eval.metrics.sketch import Sketch, SketchMetric
from srs_eval.metrics.smooth import NODES, CosineField, onto_grid
from srs_eval.metrics.tally import Tally
from srs_eval.nouns import FloatArray

# Relative: far below what the Gaussian approximation is good for.
PRECISION = 1e-5
MOST_STEPS = 40
# Below this, smoothing has no effect.
NARROWEST = 1e-12
# Points the noise is integrated over, at least.
FEWEST_POINTS = 2**10


def floor_of(counted: Tally) -> float:
    """Compute the level of `SmeceExact` for true predictions, of a tally: in [0, 0.4]."""
    n = counted.n
    if not n > 0:
        return math.nan
    counted = counted.compact
    variance = counted.count * counted.p * (1 - counted.p)
    noise = _Noise.of(onto_grid(counted.p, variance / n**2, NODES + 1))
    # However wide the kernel, the noise of the mean is left; and at most that of each review.
    spread = np.sqrt(counted.p * (1 - counted.p)) @ counted.count / n
    # Roots are taken first: of predictions near the smallest number, nothing else may be taken off.
    lowest = sigma = math.sqrt(2 / math.pi) * math.sqrt(float(variance.sum())) / n
    # The noise left shrinks with the bandwidth, as one over its square root or slower. So
    # each of these steps at least cuts the distance to the floor by three.
    for _ in range(MOST_STEPS):
        if sigma < NARROWEST:
            break
        before, sigma = sigma, (noise.level(sigma) ** 2 * sigma) ** (1 / 3)
        if abs(sigma - before) <= PRECISION * sigma:
            break
    # Levels as small as the distance of the nodes are blurred by it.
    return min(max(sigma, lowest), math.sqrt(2 / math.pi) * float(spread))


@dataclass(frozen=True, slots=True)
class _Noise:
    """Variance of the residuals on the nodes of [0, 1], ready to be smoothed."""

    masses: FloatArray  # [nodes]: Variance at each node, as a share of the reviews squared
    field: CosineField  # Of the masses

    @classmethod
    def of(cls, masses: FloatArray) -> _Noise:
        """Transform masses."""
        return cls(masses, CosineField.of(masses))

    def level(self, sigma: float) -> float:
        """Integrate the mean absolute value of the residuals smoothed at a bandwidth."""
        damped = self.field.damped(sigma / math.sqrt(2)) / (2 * sigma * math.sqrt(math.pi))
        # A prediction and its mirror image behind a wall meet at that wall.
        at_zero, at_one = self._walls(math.sqrt(2) * sigma)
        fading = np.exp(-((np.arange(len(damped)) * (math.pi * sigma)) ** 2) / 4)
        damped += at_zero * fading
        damped[::2] += at_one * fading[::2]
        damped[1::2] -= at_one * fading[1::2]
        # Eight points in a half-wave of the highest frequency left.
        cells = max(FEWEST_POINTS, 2 ** math.ceil(math.log2(8 * len(damped))))
        padded = np.zeros(cells + 1)
        padded[: len(damped)] = damped
        size = np.sqrt(np.maximum(dct(padded, type=1), 0))
        mean = float((size.sum() - 0.5 * (size[0] + size[-1])) / cells)
        return math.sqrt(2 / math.pi) * mean

    def _walls(self, width: float) -> tuple[float, float]:
        """Variance that predictions and their mirror images share, at 0 and at 1."""
        nodes = len(self.masses)
        # A Gaussian vanishes at nine of its widths.
        near = min(nodes, math.ceil(4.5 * width * (nodes - 1)) + 1)
        distance = 2 * np.arange(near) / (nodes - 1) / width
        kernel = np.exp(-0.5 * distance**2) / (math.sqrt(2 * math.pi) * width)
        return float(kernel @ self.masses[:near]), float(kernel @ self.masses[: -near - 1 : -1])


class SmeceFloor(SketchMetric):
    """Level of `SmeceExact` for true predictions: what is left of it is miscalibration.

    It shrinks about as the cube root of the number of reviews, which are taken as independent.
    Outcomes play no part.

    Examples
    --------
    >>> round(SmeceFloor().of_outcomes([0.9] * 100, [True] * 100), 4)
    0.0239
    """

    name, better, section = "smece_floor", "neither", "calibration"
    has_interval = False
    bounds = (0.0, 1.0)

    def of(self, sketch: Sketch) -> float:
        return floor_of(sketch.tally)
