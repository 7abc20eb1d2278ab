"""The smooth reliability curve: how often people recall, against what was predicted."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from srs_eval.metrics.smece import fixed_point, smece_exact
from srs_eval.metrics.smooth import CosineField
from srs_eval.metrics.validate import paired
from srs_eval.nouns import BoolArray, FloatArray, IntArray

# Cells the predictions are counted in, so that time does not depend on their number.
CELLS = 2**12
# A narrower curve would show the cells rather than the predictions.
NARROWEST = 0.002
# The curve ends where fewer predictions than this lie within its kernel.
FEWEST_NEARBY = 0.5


@dataclass(frozen=True, slots=True)
class ReliabilityCurve:
    """A calibration curve smoothed at the SmoothECE bandwidth, on a grid of predictions.

    Attributes
    ----------
    p_grid : float64 [m]
        Predicted probabilities, evenly spaced from 0 to 1.
    observed : float64 [m]
        Smoothed share of recalls near each of them; NaN where nothing was predicted.
    density : float64 [m]
        Density of the predictions; its integral over [0, 1] is 1.
    lo, hi : float64 [m]
        Pointwise bootstrap band of `observed`; NaN where `observed` is.
    smece : float
        SmoothECE (the exact fixed point).
    half_width : float
        Larger side of the basic bootstrap interval of `smece`.
    sigma : float
        Bandwidth of the curve: SmoothECE itself, but at least 0.002.
    n : int
        Number of predictions.
    """

    p_grid: FloatArray
    observed: FloatArray
    density: FloatArray
    lo: FloatArray
    hi: FloatArray
    smece: float
    half_width: float
    sigma: float
    n: int


def reliability_curve(
    p: ArrayLike,
    recalled: ArrayLike,
    *,
    points: int = 201,
    level: float = 0.95,
    resamples: int = 200,
    seed: int = 0,
) -> ReliabilityCurve:
    """Draw the smooth calibration curve of some predictions, with its uncertainty.

    Time hardly depends on n. The bootstrap draws reviews: with many users it is too sure.

    Parameters
    ----------
    p : float [n], in [0, 1]
        Predicted probability of recall.
    recalled : bool [n]
        Outcome.
    points : int
        Points of the curve.
    level, resamples, seed
        Of the bootstrap of the band and of SmoothECE.

    Returns
    -------
    ReliabilityCurve

    References
    ----------
    Błasiok and Nakkiran (2023), arXiv:2309.12236.

    Examples
    --------
    >>> curve = reliability_curve([0.8] * 50, [1] * 40 + [0] * 10)
    >>> round(float(curve.observed[160]), 6), round(curve.smece, 6)
    (0.8, 0.0)
    """
    probability, outcome = paired(p, recalled)
    grid = np.linspace(0, 1, points)
    if not probability.size:
        return _undefined(grid)
    error = smece_exact(probability, outcome)
    sigma = max(error, NARROWEST)
    counts = _counted(probability, outcome)
    observed, density = _smoothed(counts[None], sigma, grid)
    nearby = density[0] * len(probability) * sigma * math.sqrt(2 * math.pi) >= FEWEST_NEARBY
    drawn = np.random.default_rng(seed).poisson(counts, (resamples, *counts.shape))
    lo, hi = _band(_smoothed(drawn, sigma, grid)[0], level)
    return ReliabilityCurve(
        p_grid=grid,
        observed=np.where(nearby, observed[0], np.nan),
        density=density[0],
        lo=np.where(nearby, lo, np.nan),
        hi=np.where(nearby, hi, np.nan),
        smece=error,
        half_width=_half_width(counts, drawn, level),
        sigma=sigma,
        n=len(probability),
    )


def _undefined(grid: FloatArray) -> ReliabilityCurve:
    """Say nothing about nothing."""
    nothing, none = np.full(len(grid), np.nan), math.nan
    return ReliabilityCurve(grid, nothing, nothing, nothing, nothing, none, none, none, 0)


def _counted(p: FloatArray, recalled: BoolArray) -> IntArray:
    """Count the predictions in cells [2, cells]: those forgotten, and those recalled."""
    cell = np.rint(p.astype(np.float64, copy=False) * CELLS).astype(np.int64)
    return np.stack([np.bincount(cell[recalled == kept], minlength=CELLS + 1) for kept in (0, 1)])


def _smoothed(counts: IntArray, sigma: float, grid: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Share recalled, and density of predictions, of tables of counts [tables, 2, cells]."""
    fields = CosineField.of(counts.astype(np.float64)).at(sigma, grid)
    # Far from all predictions the cosine series leaves rounding, not nothing.
    fields = np.maximum(fields, 0)
    total = fields.sum(axis=1)
    somewhere = total * sigma > 1e-3
    share = np.divide(fields[:, 1], total, out=np.full_like(total, np.nan), where=somewhere)
    numbers = counts.sum(axis=(1, 2))
    return share, total / np.maximum(numbers, 1)[:, None]


def _band(shares: FloatArray, level: float) -> FloatArray:
    """Pointwise quantiles [2, points] of resampled curves, over where they are defined."""
    ordered = np.sort(shares, axis=0)  # NaN last
    known = (~np.isnan(ordered)).sum(axis=0)
    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    rank = np.rint(tails[:, None] * np.maximum(known - 1, 0)).astype(np.int64)
    band: FloatArray = np.take_along_axis(ordered, rank, axis=0)
    return band


def _half_width(counts: IntArray, drawn: IntArray, level: float) -> float:
    """Larger side of the basic bootstrap interval of SmoothECE."""
    estimate = _error_of(counts)
    errors = np.array([_error_of(table) for table in drawn])
    below, above = np.quantile(errors, [(1 - level) / 2, (1 + level) / 2])
    return float(max(above - estimate, estimate - below))


def _error_of(counts: IntArray) -> float:
    """SmoothECE of counts [2, cells], each prediction taken at the middle of its cell."""
    forgotten, recalled = counts
    number = max(1, int(counts.sum()))
    middle = np.linspace(0, 1, CELLS + 1)
    return fixed_point(CosineField.of((middle * (forgotten + recalled) - recalled) / number))
