"""Smooth curves of observed against predicted recall: by kernel, and by local regression."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from srs_eval.data.reviews import FloatArray, IntArray
from srs_eval.metrics.metric import metric
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
SPAN = 2 / 3
# Windows hold all reviews where one prediction is that of so many: a window of two thirds would lie
# in it, or end at it without giving it weight, and follow a handful of others.
TIED = 0.6
# Fits are made this far apart, as a share of the range of predictions.
SPACING = 0.01
# More predictions than this are joined, which moves none by more than 3e-5.
ICI_CELLS = 2**15
# Weights looked at together: few enough to stay in the cache.
BLOCK = 2**17


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
    return np.asarray(np.take_along_axis(ordered, rank, axis=0))


@metric("lower", (0.0, math.inf), has_interval=False)
def ici(tally: Tally) -> float:
    """Mean distance between predictions and a smooth regression of outcomes on them.

    The integrated calibration index. The regression is Cleveland's lowess over two thirds of the
    reviews, without robustness iterations, fitted at steps of a hundredth of the range and
    interpolated between. Equal predictions share their mean outcome, so that their order cannot
    matter; more than 2**15 distinct ones are joined first. The number is within 1e-6 of the one
    statsmodels' lowess gives, unless one prediction is that of 60 % of the reviews or more. There a
    window of two thirds would follow a handful of neighbours (statsmodels' number is noise of 0.02
    to 0.6), and the regression is over all reviews. At least 0, lower is better; the absolute mean
    bias if all predictions are equal.
    Austin and Steyerberg (2019), doi:10.1002/sim.8281; Cleveland (1979),
    doi:10.1080/01621459.1979.10481038.

    >>> from srs_eval.metrics.tally import tally
    >>> round(ici(tally([0.9, 0.9, 0.9, 0.9], [1, 1, 1, 0])), 6)
    0.15
    """
    cells = tally.compact.at_most(ICI_CELLS)
    return float(np.abs(lowess(cells) - cells.p) @ cells.count) / cells.n


def lowess(tally: Tally) -> FloatArray:
    """Fit a local linear regression of outcomes on predictions, [m] like the tally."""
    anchors = _anchors(tally.p)
    where = tally.p[anchors]
    radius = _radii(tally, where)
    # Columns whose weighted sums a regression follows from; one matrix product adds them up.
    x = tally.p - 0.5 * (tally.p[0] + tally.p[-1])
    count, recalled = tally.count, tally.recalled
    columns = np.stack([count, count * x, count * x * x, recalled, recalled * x], axis=1)
    height, sums = max(1, BLOCK // len(tally)), np.empty((len(where), 5))
    for begin in range(0, len(where), height):
        rows = slice(begin, begin + height)
        sums[rows] = _tricube(tally.p, where[rows], radius[rows]) @ columns
    # Heights of weighted least squares lines at the anchors.
    total, first, second, hits, mixed = sums.T
    centre, level = first / total, hits / total
    spread, tilt = second / total - centre**2, mixed / total - centre * level
    slope = np.divide(tilt, spread, out=np.zeros_like(tilt), where=spread >= 1e-12)
    return np.asarray(np.interp(tally.p, where, level + (x[anchors] - centre) * slope))


def _anchors(p: FloatArray) -> IntArray:
    """Choose the anchors: the last prediction within each step, and both ends."""
    within = np.searchsorted(p, p + SPACING * (p[-1] - p[0]), side="right") - 1
    following = np.maximum(within, np.arange(1, len(p) + 1)).tolist()
    chosen, last = [0], len(p) - 1
    while chosen[-1] < last:
        chosen.append(following[chosen[-1]])
    return np.array(chosen)


def _radii(tally: Tally, where: FloatArray) -> FloatArray:
    """Distance within which the nearest reviews to some predictions lie."""
    p, until = tally.p, np.cumsum(tally.count)
    n = float(until[-1])
    if tally.count.max() >= TIED * n:
        furthest: FloatArray = np.maximum(where - p[0], p[-1] - where)
        return furthest
    # A window of one review would follow every outcome.
    width = min(n, max(2.0, math.floor(SPAN * n + 1e-10)))
    # Windows that begin at each prediction end where they hold enough reviews.
    end = np.searchsorted(until, np.append(0, until[:-1]) + width)
    windows = np.searchsorted(end, len(p))
    lowest, highest = p[:windows], p[end[:windows]]
    # Of those whose middle is below, the last is the nearest; of the others, the first.
    above = np.searchsorted(lowest + highest, 2 * where)
    left, right = np.maximum(above - 1, 0), np.minimum(above, windows - 1)
    return np.minimum(
        np.maximum(where - lowest[left], highest[left] - where),
        np.maximum(where - lowest[right], highest[right] - where),
    )


def _tricube(p: FloatArray, where: FloatArray, radius: FloatArray) -> FloatArray:
    """Weights of predictions around anchors [anchors, m], which vanish at a radius."""
    # With no radius all of the window is at the anchor, and the anchor alone has weight.
    scale = np.minimum(1 / np.maximum(radius, np.finfo(np.float64).tiny), 1e300)
    distance = np.minimum(np.abs(where[:, None] - p) * scale[:, None], 1)
    rest = 1 - distance * distance * distance
    return np.asarray(rest * rest * rest)
