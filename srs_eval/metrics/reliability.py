"""The smooth reliability curve: observed against predicted recall."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from srs_eval.data.reviews import FloatArray, IntArray
from srs_eval.metrics.smooth_ece import (
    bandwidth,
    cosine_series,
    damped,
    smece_exact,
    smece_floor,
)
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
    cells = _Cells.of(tally)
    observed, density = cells.smoothed(cells.counts[None], sigma, grid)
    nearby = density[0] * tally.n * sigma * math.sqrt(2 * math.pi) >= FEWEST_NEARBY
    rng = np.random.default_rng(seed)
    drawn, calibrated = cells.resampled(rng, resamples), cells.calibrated(rng, resamples)
    bands = [_band(cells.smoothed(tables, sigma, grid)[0]) for tables in (drawn, calibrated)]
    lo, hi, null_lo, null_hi = (np.where(nearby, edge, np.nan) for band in bands for edge in band)
    return ReliabilityCurve(
        p_grid=grid,
        observed=np.where(nearby, observed[0], np.nan),
        density=density[0],
        lo=lo,
        hi=hi,
        null_lo=null_lo,
        null_hi=null_hi,
        smece=error,
        half_width=_half_width(cells, drawn),
        smece_floor=smece_floor(tally),
        sigma=sigma,
        n=tally.n,
    )


@dataclass(frozen=True, slots=True)
class _Cells:
    """Predictions counted in cells: few numbers, from which many can be drawn."""

    cell: IntArray  # [used], increasing: The cells from 0 to `CELLS` that hold predictions
    counts: FloatArray  # [2, used]: Forgotten and recalled reviews
    p: FloatArray  # [used]: Mean predictions

    @classmethod
    def of(cls, tally: Tally) -> _Cells:
        cell = np.rint(tally.p * CELLS).astype(np.int64)
        columns = (tally.forgotten, tally.recalled, tally.p * tally.count)
        sums: FloatArray = np.stack([np.bincount(cell, each, CELLS + 1) for each in columns])
        used = np.flatnonzero(sums[0] + sums[1])
        counts, total = sums[:2, used], sums[2, used]
        return cls(used, counts, np.clip(total / counts.sum(axis=0), 0, 1))

    def resampled(self, rng: np.random.Generator, times: int) -> FloatArray:
        """Resample the reviews: tables [times, 2, used]."""
        return rng.poisson(self.counts, (times, *self.counts.shape)).astype(np.float64)

    def calibrated(self, rng: np.random.Generator, times: int) -> FloatArray:
        """Draw outcomes from the predictions: tables [times, 2, used]."""
        count = self.counts.sum(axis=0)
        recalled = rng.binomial(count.astype(np.int64), self.p, (times, len(count)))
        return np.stack([count - recalled, recalled], axis=1)

    def masses(self, values: FloatArray) -> FloatArray:
        """Bring values [..., used] to all cells [..., CELLS + 1]."""
        masses = np.zeros((*values.shape[:-1], CELLS + 1))
        masses[..., self.cell] = values
        return masses

    def error(self, counts: FloatArray) -> float:
        """SmoothECE of counts [2, used], with the mean prediction of each cell."""
        count = counts.sum(axis=0)
        residual = self.p * count - counts[1]
        return bandwidth(self.masses(residual / max(1.0, float(count.sum()))))

    def smoothed(
        self, tables: FloatArray, sigma: float, grid: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Share recalled, and density of predictions, of counts [tables, 2, used]."""
        series = damped(cosine_series(self.masses(tables)), sigma)
        waves = np.cos(np.outer(np.arange(series.shape[-1]) * math.pi, grid))
        waves[1:] *= 2
        # Far from all predictions the cosine series leaves rounding, not nothing.
        fields = np.maximum(series @ waves, 0)
        total = fields.sum(axis=1)
        somewhere = total * sigma > 1e-3
        share = np.divide(fields[:, 1], total, out=np.full_like(total, np.nan), where=somewhere)
        numbers = tables.sum(axis=(1, 2))
        return share, total / np.maximum(numbers, 1)[:, None]


def _band(shares: FloatArray) -> FloatArray:
    """Pointwise quantiles [2, points] of resampled curves, over where they are defined."""
    ordered = np.sort(shares, axis=0)  # NaN last
    defined = (~np.isnan(ordered)).sum(axis=0)
    rank = np.rint(np.array(TAILS)[:, None] * np.maximum(defined - 1, 0)).astype(np.int64)
    band: FloatArray = np.take_along_axis(ordered, rank, axis=0)
    return band


def _half_width(cells: _Cells, drawn: FloatArray) -> float:
    """Larger side of the basic bootstrap interval of SmoothECE."""
    estimate = cells.error(cells.counts)
    below, above = np.quantile([cells.error(counts) for counts in drawn], TAILS)
    return float(max(above - estimate, estimate - below))
