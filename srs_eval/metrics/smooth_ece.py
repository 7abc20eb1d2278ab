"""SmoothECE: the calibration error after smoothing with a bandwidth equal to the error.

There are two versions. `smece` is the published one: the bandwidth is searched on a lattice of
1/1024 and the kernel is truncated. `smece_exact` solves the definition. Neither may rank models
alone: always predicting the base rate scores 0.

A reflected Gaussian is what heat does in a rod with insulated ends, so smoothing masses on nodes of
[0, 1] is one cosine transform, a factor for each frequency, and one transform back.

References
----------
Błasiok and Nakkiran (2023), Smooth ECE: principled reliability diagrams via kernel smoothing,
arXiv:2309.12236.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dct, irfft, rfft
from scipy.optimize import brentq

from srs_eval.data.reviews import FloatArray
from srs_eval.metrics.metric import metric
from srs_eval.metrics.tally import Tally

NODES = 2**14
# Divided by a bandwidth, the frequency beyond which the factor of smoothing is below 1e-18.
VANISHED = 2.9
# Bandwidths of `smece` are multiples of 1 / LATTICE, and at least so many of them.
LATTICE, LATTICE_FLOOR = 1024, 2
DENSITY_FLOOR = 1e-4
EVALUATION_POINTS = 200
# Of bandwidths, and of the floor, relative: far below what its Gaussian approximation is good for.
PRECISION, FLOOR_PRECISION = 1e-10, 1e-5
MOST_STEPS = 40
# Below this, smoothing has no effect.
NARROWEST = 1e-12
# Points the noise is integrated over, at least.
FEWEST_POINTS = 2**10
Grids = dict[int, NDArray[np.complex128]]  # Transforms [2, frequencies] by number of nodes


@metric("lower", (0.0, 1.0), has_interval=False)
def smece(tally: Tally) -> float:
    """SmoothECE as commonly printed: 0 is calibrated, lower is better, in [0, 1].

    Agrees with relplot 1.0.3 (and so with published tables) to rounding.

    >>> from srs_eval.metrics.tally import tally
    >>> round(smece(tally([0.9] * 10, [1] * 8 + [0] * 2)), 4)
    0.1
    """
    cells, grids = tally.compact, Grids()
    low, high = 0, LATTICE
    while high - low > 1:
        middle = (low + high) // 2
        # Joined neighbours move the error by far less than a step.
        if middle < LATTICE_FLOOR or middle / LATTICE < _error(cells, middle, grids):
            low = middle
        else:
            high = middle
    return _error(tally, high, grids if cells is tally else {})


def _error(tally: Tally, step: int, grids: Grids) -> float:
    """Smoothed error at the bandwidth `step` / 1024; `grids` keeps transforms of the tally."""
    grid, spectrum, points = _kernel(step)
    if len(grid) not in grids:
        residual = onto_grid(tally.p, tally.residual, len(grid))
        masses = np.stack([residual, onto_grid(tally.p, tally.count, len(grid))])
        grids[len(grid)] = rfft(np.concatenate([masses, masses[:, -2:0:-1]], axis=1))
    smooth = irfft(grids[len(grid)] * spectrum)[:, : len(grid)]
    residual, density = np.interp(points, grid, smooth[0]), np.interp(points, grid, smooth[1])
    return float(np.abs(residual).sum() / (density + DENSITY_FLOOR).sum())


@lru_cache
def _kernel(step: int) -> tuple[FloatArray, NDArray[np.complex128], FloatArray]:
    """Return nodes, the transform of the kernel at `step` / 1024, and points to sum at."""
    sigma = step / LATTICE
    nodes = max(2000, round(20 / sigma)) // 2 + 1
    kernel = np.zeros(2 * (nodes - 1))
    # With an even number of nodes the kernel's middle falls between two of them.
    lag = np.arange(nodes) - nodes // 2
    grid = np.linspace(0, 1, nodes)
    density = np.exp(-0.5 * ((grid - 0.5) / sigma) ** 2) / (math.sqrt(2 * math.pi) * sigma)
    np.add.at(kernel, lag % len(kernel), density)
    points = np.linspace(0, 1, max(round(10 / sigma), EVALUATION_POINTS))
    return grid, np.asarray(rfft(kernel)), points


def onto_grid(p: FloatArray, values: FloatArray, nodes: int) -> FloatArray:
    """Share each value between the two nodes around its prediction, of `nodes` from 0 to 1."""
    upper = p * (nodes - 1)
    cell = np.minimum(upper.astype(np.int64), nodes - 2)
    upper -= cell
    upper *= values
    masses = np.bincount(cell, values - upper, nodes) + np.bincount(cell + 1, upper, nodes)
    return masses.astype(np.float64, copy=False)


@metric("lower", (0.0, 1.0), has_interval=False)
def smece_exact(tally: Tally) -> float:
    """SmoothECE by its definition: the bandwidth that equals the error it leaves, in [0, 1].

    Lower is better. Within 2e-6 of the definition, and never below the absolute mean bias.

    >>> from srs_eval.metrics.tally import tally
    >>> round(smece_exact(tally([0.9] * 10, [1] * 8 + [0] * 2)), 6)
    0.1
    """
    cells = tally.compact
    return bandwidth(onto_grid(cells.p, cells.residual / cells.n, NODES + 1))


def bandwidth(masses: FloatArray) -> float:
    """Solve for the bandwidth that equals the absolute integral it leaves of masses [nodes]."""
    series = cosine_series(masses)

    def excess(sigma: float) -> float:
        return absolute_integral(series, sigma) - sigma

    # No smoothing can leave less than the mean bias, or more than all the masses.
    lowest, highest = abs(float(series[0])), float(np.abs(masses).sum())
    if highest - lowest < PRECISION or excess(lowest) <= 0:
        return lowest
    if excess(highest) >= 0:
        return highest
    return float(brentq(excess, lowest, highest, xtol=PRECISION))


def cosine_series(masses: FloatArray) -> FloatArray:
    """Add up mass times cos(k pi x) for k from 0, of masses on nodes of [0, 1] [..., nodes]."""
    # The type-I transform counts inner nodes twice and end nodes once.
    doubled = masses.copy()
    doubled[..., [0, -1]] *= 2
    return np.asarray(0.5 * dct(doubled, type=1))


def damped(series: FloatArray, sigma: float) -> FloatArray:
    """Cosine series after smoothing, without the frequencies that vanish."""
    finest = series.shape[-1] - 1
    length = 1 + math.ceil(min(finest, VANISHED / max(sigma, 1e-9)))
    frequency = np.arange(length) * (math.pi * sigma)
    return np.asarray(series[..., :length] * np.exp(-0.5 * frequency**2))


def absolute_integral(series: FloatArray, sigma: float) -> float:
    """Integrate the absolute value of a cosine series over [0, 1], smoothed at a bandwidth."""
    smooth = damped(series, sigma)
    # Sixteen points in a half-wave of the highest frequency left.
    cells = min(len(series) - 1, max(2**12, 2 ** math.ceil(math.log2(16 * len(smooth)))))
    return float(np.trapezoid(np.abs(dct(smooth, type=1, n=cells + 1)), dx=1 / cells))


@metric("neither", (0.0, 1.0), has_interval=False)
def smece_floor(tally: Tally) -> float:
    """Level of `smece_exact` for true predictions: what is left of it is miscalibration.

    In [0, 0.4]. It shrinks about as the cube root of the number of reviews, which are taken as
    independent. Outcomes play no part. With outcomes drawn from the predictions, the smoothed
    residual at t has the variance v(t) = sum of p (1 - p) K(t, p)**2 / n**2. It is nearly Gaussian,
    so its absolute value is sqrt(2 v(t) / pi) on average, and the floor is the bandwidth that
    equals the integral of that.

    >>> from srs_eval.metrics.tally import tally
    >>> round(smece_floor(tally([0.9] * 100, [True] * 100)), 4)
    0.0239
    """
    n, tally = tally.n, tally.compact
    variance = tally.count * tally.p * (1 - tally.p)
    masses = onto_grid(tally.p, variance / n**2, NODES + 1)
    series = cosine_series(masses)
    # However wide the kernel, the noise of the mean is left; and at most that of each review.
    spread = np.sqrt(tally.p * (1 - tally.p)) @ tally.count / n
    # Roots are taken first: of predictions near the smallest number, nothing else may be taken off.
    lowest = sigma = math.sqrt(2 / math.pi) * math.sqrt(float(variance.sum())) / n
    # The noise left shrinks with the bandwidth, as one over its square root or slower. So
    # each of these steps at least cuts the distance to the floor by three.
    for _ in range(MOST_STEPS):
        if sigma < NARROWEST:
            break
        before, sigma = sigma, (_noise(masses, series, sigma) ** 2 * sigma) ** (1 / 3)
        if abs(sigma - before) <= FLOOR_PRECISION * sigma:
            break
    # Levels as small as the distance of the nodes are blurred by it.
    return min(max(sigma, lowest), math.sqrt(2 / math.pi) * float(spread))


def _noise(masses: FloatArray, series: FloatArray, sigma: float) -> float:
    """Integrate the mean absolute value of residuals with some variances, smoothed at a bandwidth.

    The square of a Gaussian kernel is a narrower Gaussian: the variance is a smoothed field itself.
    """
    variance = damped(series, sigma / math.sqrt(2)) / (2 * sigma * math.sqrt(math.pi))
    # A prediction and its mirror image behind a wall meet at that wall.
    width = math.sqrt(2) * sigma
    at_zero, at_one = _at_wall(masses, width), _at_wall(masses[::-1], width)
    fading = np.exp(-((np.arange(len(variance)) * (math.pi * sigma)) ** 2) / 4)
    variance += at_zero * fading
    variance[::2] += at_one * fading[::2]
    variance[1::2] -= at_one * fading[1::2]
    # Eight points in a half-wave of the highest frequency left.
    cells = max(FEWEST_POINTS, 2 ** math.ceil(math.log2(8 * len(variance))))
    size = np.sqrt(np.maximum(dct(variance, type=1, n=cells + 1), 0))
    return math.sqrt(2 / math.pi) * float(np.trapezoid(size, dx=1 / cells))


def _at_wall(masses: FloatArray, width: float) -> float:
    """Variance that predictions share with their mirror images behind the first node."""
    nodes = len(masses)
    inner = masses[: math.ceil(4.5 * width * (nodes - 1)) + 1]  # a Gaussian vanishes at nine widths
    distance = 2 * np.arange(len(inner)) / (nodes - 1) / width
    kernel = np.exp(-0.5 * distance**2) / (math.sqrt(2 * math.pi) * width)
    return float(kernel @ inner)
