"""The integrated calibration index: distance of a local regression from the diagonal."""

from __future__ import annotations

import math

import numpy as np

from srs_eval.data.reviews import FloatArray, IntArray
from srs_eval.metrics.metric import metric
from srs_eval.metrics.tally import COMPACT, Tally

SPAN = 2 / 3
# Windows hold all reviews where one prediction is that of so many: a window of two thirds would lie
# in it, or end at it without giving it weight, and follow a handful of others.
TIED = 0.6
# Fits are made this far apart, as a share of the range of predictions.
SPACING = 0.01
# More predictions than this are joined, which moves none by more than 3e-5.
CELLS = 2**15
# Weights looked at together: few enough to stay in the cache.
BLOCK = 2**17


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
    cells = tally.at_most(COMPACT).at_most(CELLS)
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
    fitted: FloatArray = np.interp(tally.p, where, level + (x[anchors] - centre) * slope)
    return fitted


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
