"""SmoothECE: the calibration error after smoothing with a bandwidth equal to the error.

There are two versions. `smece` is the published one: the bandwidth is searched on a lattice of
1/1024 and the kernel is truncated. `smece_exact` solves the definition. Neither may rank models
alone: always predicting the base rate scores 0.

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

from srs_eval.metrics.metric import metric
from srs_eval.metrics.smooth import NODES, CosineField, onto_grid
from srs_eval.metrics.tally import COMPACT, Tally
from srs_eval.nouns import FloatArray

LATTICE = 1024
# Smallest bandwidth, in steps of the lattice.
LATTICE_FLOOR = 2
DENSITY_FLOOR = 1e-4
EVALUATION_POINTS = 200
Grids = dict[int, list[NDArray[np.complex128]]]  # Transforms by number of nodes
# Of the bandwidths of `fixed_points`, and of the floor, relative: far below what its Gaussian
# approximation is good for.
PRECISION, FLOOR_PRECISION = 1e-10, 1e-5
MOST_STEPS = 40
# Where the search of `fixed_points` begins: as narrow as most are, and wide enough to leave few
# frequencies.
USUAL = 0.05
# Below this, smoothing has no effect.
NARROWEST = 1e-12
# Points the noise is integrated over, at least.
FEWEST_POINTS = 2**10


@metric("lower", (0.0, 1.0), has_interval=False)
def smece(tally: Tally) -> float:
    """SmoothECE as commonly printed: 0 is calibrated, lower is better, in [0, 1].

    Agrees with relplot 1.0.3 (and so with published tables) to rounding.

    >>> from srs_eval.metrics.tally import tally
    >>> round(smece(tally([0.9] * 10, [1] * 8 + [0] * 2)), 4)
    0.1
    """
    return smece_on_lattice(tally)[0]


def smece_on_lattice(tally: Tally) -> tuple[float, float]:
    """SmoothECE as commonly printed, and its bandwidth."""
    grids: Grids = {}
    low, high = 0, LATTICE
    while high - low > 1:
        middle = (low + high) // 2
        # Joined neighbours move the error by far less than a step.
        if middle < LATTICE_FLOOR or middle / LATTICE < _error(tally.compact, middle, grids):
            low = middle
        else:
            high = middle
    return _error(tally, high, {} if len(tally) > COMPACT else grids), high / LATTICE


def _error(tally: Tally, step: int, grids: Grids) -> float:
    """Smoothed error at the bandwidth `step` / 1024; `grids` keeps transforms of the tally."""
    grid, spectrum, points = _kernel(step)
    if len(grid) not in grids:
        columns = (tally.residual, tally.count)
        grids[len(grid)] = [_spectrum(tally, values, len(grid)) for values in columns]
    residual, density = (
        np.interp(points, grid, irfft(each * spectrum)[: len(grid)]) for each in grids[len(grid)]
    )
    return float(np.abs(residual).sum() / (density + DENSITY_FLOOR).sum())


def _spectrum(tally: Tally, values: FloatArray, nodes: int) -> NDArray[np.complex128]:
    """Fourier transform of values on a grid of nodes and its mirror image."""
    masses = onto_grid(tally.p, values, nodes)
    return np.asarray(rfft(np.concatenate([masses, masses[-2:0:-1]])))


@lru_cache(maxsize=64)
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


@metric("lower", (0.0, 1.0), has_interval=False)
def smece_exact(tally: Tally) -> float:
    """SmoothECE by its definition: the bandwidth that equals the error it leaves, in [0, 1].

    Lower is better. Within 2e-6 of the definition, and never below the absolute mean bias.

    >>> from srs_eval.metrics.tally import tally
    >>> round(smece_exact(tally([0.9] * 10, [1] * 8 + [0] * 2)), 6)
    0.1
    """
    return float(fixed_points(residual_field(tally))[0])


def residual_field(tally: Tally) -> CosineField:
    """Mean of prediction minus outcome, as masses along the predictions: one row."""
    cells = tally.compact
    return CosineField.of(onto_grid(cells.p, cells.residual / cells.n, NODES + 1)[None])


def fixed_points(residuals: CosineField, begin: float = USUAL) -> FloatArray:
    """Solve for the bandwidth [fields] that equals the error it leaves, to 1e-10, by secants."""
    # No smoothing can leave less than the mean bias, or more than all the masses.
    lowest, highest = np.abs(residuals.coefficients[:, 0]), residuals.total_variation
    bandwidths = lowest.copy()
    left = np.flatnonzero(highest - lowest >= PRECISION)
    lowest, highest = lowest[left], highest[left]
    sigma = np.clip(begin, lowest, highest)
    before = last = np.full(len(left), math.nan)
    while len(left):
        excess = residuals.absolute_integrals(sigma, left) - sigma
        # Where the error is above the bandwidth, so is the solution; but the error falls as the
        # bandwidth grows, so what a bandwidth leaves is beyond the solution.
        is_above = excess > 0
        highest = np.where(is_above, np.minimum(highest, sigma + excess), sigma)
        lowest = np.where(is_above, sigma, np.maximum(lowest, sigma + excess))
        with np.errstate(divide="ignore", invalid="ignore"):
            following = sigma + excess * (sigma - before) / (last - excess)
        is_within = (lowest < following) & (following < highest)
        following = np.where(is_within, following, 0.5 * (lowest + highest))
        is_met = np.abs(excess) < PRECISION
        bandwidths[left] = np.where(is_met, sigma, following)
        open_ = ~is_met & (highest - lowest > PRECISION)
        left, lowest, highest = left[open_], lowest[open_], highest[open_]
        before, last, sigma = sigma[open_], excess[open_], following[open_]
    return bandwidths


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
    field = CosineField.of(masses)
    # However wide the kernel, the noise of the mean is left; and at most that of each review.
    spread = np.sqrt(tally.p * (1 - tally.p)) @ tally.count / n
    # Roots are taken first: of predictions near the smallest number, nothing else may be taken off.
    lowest = sigma = math.sqrt(2 / math.pi) * math.sqrt(float(variance.sum())) / n
    # The noise left shrinks with the bandwidth, as one over its square root or slower. So
    # each of these steps at least cuts the distance to the floor by three.
    for _ in range(MOST_STEPS):
        if sigma < NARROWEST:
            break
        before, sigma = sigma, (_noise(masses, field, sigma) ** 2 * sigma) ** (1 / 3)
        if abs(sigma - before) <= FLOOR_PRECISION * sigma:
            break
    # Levels as small as the distance of the nodes are blurred by it.
    return min(max(sigma, lowest), math.sqrt(2 / math.pi) * float(spread))


def _noise(masses: FloatArray, field: CosineField, sigma: float) -> float:
    """Integrate the mean absolute value of residuals with some variances, smoothed at a bandwidth.

    The square of a Gaussian kernel is a narrower Gaussian: the variance is a smoothed field itself.
    """
    damped = field.damped(sigma / math.sqrt(2)) / (2 * sigma * math.sqrt(math.pi))
    # A prediction and its mirror image behind a wall meet at that wall.
    at_zero, at_one = (_at_wall(side, math.sqrt(2) * sigma) for side in (masses, masses[::-1]))
    fading = np.exp(-((np.arange(len(damped)) * (math.pi * sigma)) ** 2) / 4)
    damped += at_zero * fading
    damped[::2] += at_one * fading[::2]
    damped[1::2] -= at_one * fading[1::2]
    # Eight points in a half-wave of the highest frequency left.
    cells = max(FEWEST_POINTS, 2 ** math.ceil(math.log2(8 * len(damped))))
    size = np.sqrt(np.maximum(dct(damped, type=1, n=cells + 1), 0))
    mean = float((size.sum() - 0.5 * (size[0] + size[-1])) / cells)
    return math.sqrt(2 / math.pi) * mean


def _at_wall(masses: FloatArray, width: float) -> float:
    """Variance that predictions share with their mirror images behind the first node."""
    nodes = len(masses)
    near = masses[: math.ceil(4.5 * width * (nodes - 1)) + 1]  # a Gaussian vanishes at nine widths
    distance = 2 * np.arange(len(near)) / (nodes - 1) / width
    kernel = np.exp(-0.5 * distance**2) / (math.sqrt(2 * math.pi) * width)
    return float(kernel @ near)
