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
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, rfft

from srs_eval.metrics.sketch import Sketch, SketchMetric
from srs_eval.metrics.smooth import NODES, CosineField, onto_grid, onto_grids
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


def lattice_of(
    counted: Tally, near: float = 0.5, exact: _LatticeFields | None = None
) -> tuple[float, float]:
    """SmoothECE as commonly printed, and its bandwidth, which is looked for around `near` first."""
    if not len(counted):
        return math.nan, math.nan
    exact = quick = exact or _LatticeFields.of(counted)
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
    return float(fixed_points(residual_fields([counted]))[0])


def residual_fields(tallies: Sequence[Tally]) -> CosineField:
    """Mean of prediction minus outcome, as masses along the predictions of each tally."""
    near = [counted.compact for counted in tallies]
    masses = [each.residual / each.n for each in near]
    return CosineField.of(onto_grids([each.p for each in near], masses, NODES + 1))


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


def _solve(sketches: Sequence[Sketch]) -> None:
    """Solve for the SmoothECE of several sketches at once."""
    held = [each for each in sketches if len(each.tally) and not each.knows(exact_of)]
    if held:
        errors = fixed_points(residual_fields([sketch.tally for sketch in held]))
        for sketch, error in zip(held, errors.tolist(), strict=True):
            sketch.keep(exact_of, error)


def _look_around(sketches: Sequence[Sketch]) -> None:
    """Compute the errors of several sketches where `lattice_of` is likely to look, at once."""
    _solve(sketches)
    held = [sketch for sketch in sketches if len(sketch.tally)]
    fields = [sketch.derived(_LatticeFields.of) for sketch in held]
    nearest = [math.ceil(sketch.derived(exact_of) * LATTICE) for sketch in held]
    for lower in (0, 1):
        _smooth(fields, [min(max(step - lower, 1), LATTICE - 1) for step in nearest])


@dataclass(frozen=True, slots=True)
class _LatticeFields:
    """Residuals and counts, and what is known of them on the lattice."""

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
            _smooth([self], [step])
        return self.errors[step]


def _smooth(fields: Sequence[_LatticeFields], steps: Sequence[int]) -> None:
    """Compute the errors of fields, each at a bandwidth, together where they have equal nodes."""
    alike: dict[int, list[tuple[_LatticeFields, int]]] = {}
    for each, step in zip(fields, steps, strict=True):
        if step not in each.errors:
            alike.setdefault(_kernel(step).nodes, []).append((each, step))
    for nodes, pairs in alike.items():
        _transform([each for each, _ in pairs if nodes not in each.grids], nodes)
        spectra = [each.grids[nodes][0] * _kernel(step).spectrum for each, step in pairs]
        smoothed = irfft(np.stack(spectra), 2 * (nodes - 1))[:, :nodes]
        for (each, step), residual in zip(pairs, smoothed, strict=True):
            kernel = _kernel(step)
            weight = kernel.weight @ each.grids[nodes][1] + DENSITY_FLOOR * len(kernel.points)
            total = np.abs(np.interp(kernel.points, kernel.grid, residual)).sum()
            each.errors[step] = float(total / weight)


def _transform(fields: Sequence[_LatticeFields], nodes: int) -> None:
    """Bring fields to grids of some nodes."""
    if not fields:
        return
    p = [each.p for each in fields]
    residual = onto_grids(p, [each.residual for each in fields], nodes)
    spectra = rfft(np.concatenate([residual, residual[:, -2:0:-1]], axis=1))
    counts = onto_grids(p, [each.count for each in fields], nodes)
    for each, spectrum, count in zip(fields, spectra, counts, strict=True):
        each.grids[nodes] = spectrum, count


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
    bounds = (0.0, 1.0)
    prepare = staticmethod(_look_around)

    def of(self, sketch: Sketch) -> float:
        fields = sketch.derived(_LatticeFields.of)
        return lattice_of(sketch.tally, sketch.derived(exact_of), fields)[0]


class SmeceExact(SketchMetric):
    """SmoothECE by its definition: the bandwidth that equals the error it leaves.

    Within 2e-6 of the definition, and never below the absolute mean bias.

    Examples
    --------
    >>> round(SmeceExact().of_outcomes([0.9] * 10, [1] * 8 + [0] * 2), 6)
    0.1
    """

    name, better, section = "smece_exact", "lower", "calibration"
    bounds = (0.0, 1.0)
    prepare = staticmethod(_solve)

    def of(self, sketch: Sketch) -> float:
        return sketch.derived(exact_of)
