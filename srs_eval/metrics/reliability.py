"""The smooth reliability curve: observed against predicted recall."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from srs_eval.data.reviews import FloatArray, IntArray
from srs_eval.metrics.smooth_ece import bandwidth, cosine_series, damped, smece_exact, smece_floor
from srs_eval.metrics.tally import Tally

# Cells the predictions are counted in, so that time does not depend on their number.
CELLS = 2**12
# A narrower curve would show the cells rather than the predictions.
NARROWEST = 0.002
# The curve ends where fewer predictions than this lie within its kernel.
FEWEST_NEARBY = 0.5
# Quantiles between which bands and intervals hold 95 %.
TAILS = ((1 - 0.95) / 2, (1 + 0.95) / 2)


@dataclass(frozen=True, slots=True)
class ReliabilityCurve:
    """A calibration curve smoothed at the SmoothECE bandwidth, on a grid of predictions."""

    p_grid: FloatArray  # [m]: Predicted probabilities, evenly spaced from 0 to 1
    # [m]: Smoothed share of recalls near each of them; NaN where nothing was predicted
    observed: FloatArray
    density: FloatArray  # [m]: Density of the predictions; its integral over [0, 1] is 1
    # [m]: Pointwise 95 % bootstrap band of `observed`; NaN where `observed` is
    lo: FloatArray
    hi: FloatArray
    # [m]: Pointwise band that `observed` would keep to if predictions were calibrated; NaN where
    # `observed` is. Smoothing bends it off the diagonal at the ends, as it bends the curve
    null_lo: FloatArray
    null_hi: FloatArray
    smece: float  # SmoothECE (the exact fixed point)
    half_width: float  # Larger side of the basic bootstrap interval of `smece`
    smece_floor: float  # Expected SmoothECE if every prediction is the true probability
    sigma: float  # Bandwidth of the curve: SmoothECE itself, but at least 0.002
    n: float  # Number of predictions


def reliability_of(
    tally: Tally,
    *,
    points: int = 201,
    resamples: int = 200,
    seed: int = 0,
) -> ReliabilityCurve:
    """Compute the smooth calibration curve of a tally, with bootstrap bands.

    Run time hardly depends on the number of reviews. The bootstrap draws reviews, so with many
    users its bands are too narrow. `resamples` and `seed` are also those of the draws under
    calibration. See Błasiok and Nakkiran (2023), arXiv:2309.12236; for the band under calibration,
    Bröcker and Smith (2007), doi:10.1175/WAF993.1.
    """
    grid = np.linspace(0, 1, points)
    error = smece_exact(tally)
    sigma = max(error, NARROWEST)
    cell, sums = tally.in_cells(np.rint(tally.p * CELLS).astype(np.int64))
    counts, n = sums[:2], sums[:2].sum(axis=0)
    p = np.clip(sums[2] / n, 0, 1)
    rng = np.random.default_rng(seed)
    drawn = rng.poisson(counts, (resamples, *counts.shape)).astype(np.float64)
    hits = rng.binomial(n.astype(np.int64), p, (resamples, len(n)))
    calibrated = np.stack([n - hits, hits], axis=1)
    observed, density = _smoothed(cell, counts[None], sigma, grid)
    nowhere = density[0] * tally.n * sigma * math.sqrt(2 * math.pi) < FEWEST_NEARBY
    bands = (
        _band(_smoothed(cell, drawn, sigma, grid)[0]),
        _band(_smoothed(cell, calibrated, sigma, grid)[0]),
    )
    estimate = _error(cell, p, counts)
    below, above = np.quantile([_error(cell, p, each) for each in drawn], TAILS)
    curves = np.concatenate([observed, *bands])
    curves[:, nowhere] = np.nan
    names = ("observed", "lo", "hi", "null_lo", "null_hi")
    return ReliabilityCurve(
        p_grid=grid,
        density=density[0],
        smece=error,
        half_width=float(max(above - estimate, estimate - below)),
        smece_floor=smece_floor(tally),
        sigma=sigma,
        n=tally.n,
        **dict(zip(names, curves, strict=True)),
    )


def _smoothed(
    cell: IntArray, tables: FloatArray, sigma: float, grid: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Share recalled, and density of predictions, of counts in cells [tables, 2, cells]."""
    masses = np.zeros((*tables.shape[:-1], CELLS + 1))
    masses[..., cell] = tables
    series = damped(cosine_series(masses), sigma)
    waves = np.cos(np.outer(np.arange(series.shape[-1]) * math.pi, grid))
    waves[1:] *= 2
    # Far from all predictions the cosine series leaves rounding, not nothing.
    fields = np.maximum(series @ waves, 0)
    total = fields.sum(axis=1)
    somewhere = total * sigma > 1e-3
    share = np.divide(fields[:, 1], total, out=np.full_like(total, np.nan), where=somewhere)
    return share, total / np.maximum(tables.sum(axis=(1, 2)), 1)[:, None]


def _error(cell: IntArray, p: FloatArray, counts: FloatArray) -> float:
    """SmoothECE of counts [2, cells], with the mean prediction of each cell."""
    n = counts.sum(axis=0)
    masses = np.zeros(CELLS + 1)
    masses[cell] = (p * n - counts[1]) / max(1.0, float(n.sum()))
    return bandwidth(masses)


def _band(shares: FloatArray) -> FloatArray:
    """Pointwise quantiles [2, points] of resampled curves, over where they are defined."""
    ordered = np.sort(shares, axis=0)  # NaN last
    defined = (~np.isnan(ordered)).sum(axis=0)
    rank = np.rint(np.array(TAILS)[:, None] * np.maximum(defined - 1, 0)).astype(np.int64)
    band: FloatArray = np.take_along_axis(ordered, rank, axis=0)
    return band
