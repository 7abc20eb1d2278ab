"""SmoothECE: the calibration error after smoothing with a bandwidth equal to the error.

There are two versions. `Smece` is the published one: the bandwidth is searched on a lattice of
1/1024 and the kernel is truncated. `SmeceExact` solves the definition. Neither may rank models
alone: always predicting the base rate scores 0.

References
----------
Błasiok and Nakkiran (2023), Smooth ECE: principled reliability diagrams via kernel
smoothing, arXiv:2309.12236.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, rfft

from srs_eval.metrics.sketch import Sketch, SketchMetric
from srs_eval.metrics.smooth import NODES, CosineField, onto_grid
from srs_eval.metrics.tally import Tally
from srs_eval.nouns import FloatArray

LATTICE = 1024
# Smallest bandwidth, in steps of the lattice.
LATTICE_FLOOR = 2
DENSITY_FLOOR = 1e-4
EVALUATION_POINTS = 200
DOUBTFUL = 1e-5
# Of the bandwidths of `fixed_points`.
PRECISION = 1e-10
# Where its search begins: as narrow as most are, and wide enough to leave few frequencies.
USUAL = 0.05


def lattice_of(counted: Tally, near: float = 0.5) -> tuple[float, float]:
    """SmoothECE as commonly printed, and its bandwidth, which is looked for around `near` first."""
    if not len(counted):
        return math.nan, math.nan
    exact = quick = _LatticeFields.of(counted)
    if counted.compact is not counted:
        quick = _LatticeFields.of(counted.compact)
    low, high, stride = 0, LATTICE, 1
    middle = math.ceil(near * LATTICE)
    while high - low > 1:
        if not low < middle < high:
            middle = (low + high) // 2
        sigma, error = middle / LATTICE, quick.error(middle)
        # Joined neighbours move the error far less than this; in doubt all are looked at.
        if abs(error - sigma) < DOUBTFUL:
            error = exact.error(middle)
        if middle < LATTICE_FLOOR or sigma < error:
            low, middle = middle, middle + stride
        else:
            high, middle = middle, middle - stride
        stride *= 4
    return exact.error(high), high / LATTICE


def exact_of(counted: Tally) -> float:
    """SmoothECE by its definition."""
    return float(fixed_points(residual_field(counted))[0])


def residual_field(counted: Tally) -> CosineField:
    """Mean of prediction minus outcome, as masses along the predictions: one row."""
    cells = counted.compact
    return CosineField.of(onto_grid(cells.p, cells.residual / cells.n, NODES + 1)[None])


def fixed_points(residuals: CosineField, begin: float = USUAL) -> FloatArray:
    """Solve for the bandwidth [fields] that equals the error it leaves, to 1e-10, by secants."""
    # No smoothing can leave less than the mean bias, or more than all the masses.
    lowest, highest = np.abs(residuals.coefficients[:, 0]), residuals.total_variation
    found = lowest.copy()
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
        found[left] = np.where(is_met, sigma, following)
        open_ = ~is_met & (highest - lowest > PRECISION)
        left, lowest, highest = left[open_], lowest[open_], highest[open_]
        before, last, sigma = sigma[open_], excess[open_], following[open_]
    return found


@dataclass(frozen=True, slots=True)
class _LatticeFields:
    """Residuals and counts, and their errors on the lattice."""

    p: FloatArray
    residual: FloatArray
    count: FloatArray
    # For each number of nodes: Fourier transform of the residuals and their mirror image, and
    # the counts at the nodes
    grids: dict[int, tuple[NDArray[np.complex128], FloatArray]] = field(default_factory=dict)
    errors: dict[int, float] = field(default_factory=dict)

    @classmethod
    def of(cls, counted: Tally) -> _LatticeFields:
        """Build the fields from a tally."""
        return cls(counted.p, counted.residual, counted.count)

    def error(self, step: int) -> float:
        """Smoothed error at the bandwidth `step` / 1024, computed once."""
        if step not in self.errors:
            kernel = _kernel(step)
            spectrum, count = self._grid(kernel.nodes)
            smoothed = irfft(spectrum * kernel.spectrum, 2 * (kernel.nodes - 1))[: kernel.nodes]
            weight = kernel.weight @ count + DENSITY_FLOOR * len(kernel.points)
            total = np.abs(np.interp(kernel.points, kernel.grid, smoothed)).sum()
            self.errors[step] = float(total / weight)
        return self.errors[step]

    def _grid(self, nodes: int) -> tuple[NDArray[np.complex128], FloatArray]:
        """Bring residuals and counts to a grid of some nodes."""
        if nodes not in self.grids:
            residual = onto_grid(self.p, self.residual, nodes)
            spectrum = rfft(np.concatenate([residual, residual[-2:0:-1]]))
            self.grids[nodes] = spectrum, onto_grid(self.p, self.count, nodes)
        return self.grids[nodes]


@dataclass(frozen=True, slots=True)
class _Kernel:
    """A kernel that is cut off at one half, and the points its error is summed at."""

    grid: FloatArray  # [nodes], from 0 to 1
    spectrum: NDArray[np.complex128]  # [nodes]: Fourier transform around the mirrored grid
    points: FloatArray  # [points], from 0 to 1
    weight: FloatArray  # [nodes]: What a review at each node adds to the density at all points

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.grid)


@lru_cache(maxsize=64)
def _kernel(step: int) -> _Kernel:
    """Return the kernel with the bandwidth `step` / 1024."""
    sigma = step / LATTICE
    nodes = max(2000, round(20 / sigma)) // 2 + 1
    period = 2 * (nodes - 1)
    kernel = np.zeros(period)
    grid = np.linspace(0, 1, nodes)
    # With an even number of nodes the kernel's middle falls between two of them.
    lag = np.arange(nodes) - nodes // 2
    density = np.exp(-0.5 * ((grid - 0.5) / sigma) ** 2) / (math.sqrt(2 * math.pi) * sigma)
    np.add.at(kernel, lag % period, density)
    spectrum: NDArray[np.complex128] = rfft(kernel)
    points = np.linspace(0, 1, max(round(10 / sigma), EVALUATION_POINTS))
    # Smoothed counts are summed at the points: a product with the transpose of both steps.
    spread = irfft(rfft(onto_grid(points, np.ones(len(points)), nodes), period) * spectrum.conj())
    weight = spread[:nodes].copy()
    weight[1:-1] += spread[: nodes - 1 : -1]
    return _Kernel(grid, spectrum, points, weight)


class Smece(SketchMetric):
    """SmoothECE as commonly printed: 0 is calibrated, lower is better.

    Agrees with relplot 1.0.3 (and so with published tables) to rounding.

    Examples
    --------
    >>> round(Smece().of_outcomes([0.9] * 10, [1] * 8 + [0] * 2), 4)
    0.1
    """

    name, better, section = "smece", "lower", "calibration"
    has_interval = False
    bounds = (0.0, 1.0)

    def of(self, sketch: Sketch) -> float:
        return lattice_of(sketch.tally, sketch.derived(exact_of))[0]


class SmeceExact(SketchMetric):
    """SmoothECE by its definition: the bandwidth that equals the error it leaves.

    Within 2e-6 of the definition, and never below the absolute mean bias.

    Examples
    --------
    >>> round(SmeceExact().of_outcomes([0.9] * 10, [1] * 8 + [0] * 2), 6)
    0.1
    """

    name, better, section = "smece_exact", "lower", "calibration"
    has_interval = False
    bounds = (0.0, 1.0)

    def of(self, sketch: Sketch) -> float:
        return sketch.derived(exact_of)
