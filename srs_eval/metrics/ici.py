"""The integrated calibration index: distance of a local regression from the diagonal."""

from __future__ import annotations

import math

import numpy as np

from srs_eval.metrics.sketch import Sketch, SketchMetric
from srs_eval.metrics.tally import Tally
from srs_eval.nouns import FloatArray, IntArray

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


def ici_of(counted: Tally) -> float:
    """Compute the index of a tally: see `Ici`."""
    cells = counted.compact.at_most(CELLS)
    if not len(cells):
        return math.nan
    gap = np.abs(lowess(cells) - cells.p)
    return float(gap @ cells.count) / float(cells.count.sum())


def lowess(counted: Tally) -> FloatArray:
    """Fit a local linear regression of outcomes on predictions, [m] like the tally."""
    anchors = _anchors(counted.p)
    where = counted.p[anchors]
    radius = _radii(counted, where)
    # Columns whose weighted sums a regression follows from; one matrix product adds them up.
    x = counted.p - 0.5 * (counted.p[0] + counted.p[-1])
    count, recalled = counted.count, counted.recalled
    columns = np.stack([count, count * x, count * x * x, recalled, recalled * x], axis=1)
    sums = np.empty((len(where), 5))
    height = min(len(where), max(1, BLOCK // len(counted)))
    # Made once: to get so much memory takes as long as to fill it.
    room = np.empty((2, height, len(counted)))
    for begin in range(0, len(where), height):
        rows = slice(begin, begin + height)
        weight, cube = room[:, : len(where) - begin]
        _tricube(counted.p, where[rows], radius[rows], weight, cube)
        np.matmul(weight, columns, out=sums[rows])
    fits = _line_heights(sums, x[anchors])
    fitted: FloatArray = np.interp(counted.p, where, fits)
    return fitted


def _anchors(p: FloatArray) -> IntArray:
    """Choose the anchors: the last prediction within each step, and both ends."""
    within = np.searchsorted(p, p + SPACING * (p[-1] - p[0]), side="right") - 1
    following = np.maximum(within, np.arange(1, len(p) + 1)).tolist()
    chosen, last = [0], len(p) - 1
    while chosen[-1] < last:
        chosen.append(following[chosen[-1]])
    return np.array(chosen)


def _radii(counted: Tally, where: FloatArray) -> FloatArray:
    """Distance within which the nearest reviews to some predictions lie."""
    p, until = counted.p, np.cumsum(counted.count)
    n = float(until[-1])
    if counted.count.max() >= TIED * n:
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
    nearest = [np.maximum(above - 1, 0), np.minimum(above, windows - 1)]
    radii: FloatArray = np.min(
        [np.maximum(where - lowest[each], highest[each] - where) for each in nearest], axis=0
    )
    return radii


def _tricube(
    p: FloatArray, where: FloatArray, radius: FloatArray, weight: FloatArray, cube: FloatArray
) -> None:
    """Compute each `weight` [anchors, m], which vanishes at a radius; `cube` is room to do it in.

    Beyond the radius no review is in the window.
    """
    # With no radius all of the window is at the anchor, and the anchor alone has weight.
    scale = 1 / np.maximum(radius, np.finfo(np.float64).tiny)
    np.subtract.outer(where, p, out=weight)
    np.abs(weight, out=weight)
    weight *= np.minimum(scale, 1e300)[:, None]
    np.minimum(weight, 1, out=weight)
    np.multiply(weight, weight, out=cube)
    cube *= weight
    np.subtract(1, cube, out=cube)
    np.multiply(cube, cube, out=weight)
    weight *= cube


def _line_heights(sums: FloatArray, x: FloatArray) -> FloatArray:
    """Heights of weighted least squares lines at x, from their sums [lines, 5]."""
    total, first, second, recalled, mixed = sums.T
    centre, level = first / total, recalled / total
    spread = second / total - centre**2
    tilt = mixed / total - centre * level
    wide = spread >= 1e-12
    slope = np.divide(tilt, spread, out=np.zeros_like(tilt), where=wide)
    heights: FloatArray = level + (x - centre) * slope
    return heights


class Ici(SketchMetric):
    """Mean distance between predictions and a smooth regression of outcomes on them.

    The regression is Cleveland's lowess over two thirds of the reviews, without robustness
    iterations, fitted at steps of a hundredth of the range and interpolated between. Equal
    predictions share their mean outcome, so that their order cannot matter; more than 2**15
    distinct ones are joined first. The number is within 1e-6 of the one statsmodels' lowess
    gives, unless one prediction is that of 60 % of the reviews or more. There a window of two
    thirds would follow a handful of neighbours (statsmodels' number is noise of 0.02 to 0.6), and
    the regression is over all reviews. Lower is better; the absolute mean bias if all predictions
    are equal.

    References
    ----------
    Austin and Steyerberg (2019), doi:10.1002/sim.8281; Cleveland (1979),
    doi:10.1080/01621459.1979.10481038.

    Examples
    --------
    >>> round(Ici().of_outcomes([0.9, 0.9, 0.9, 0.9], [1, 1, 1, 0]), 6)
    0.15
    """

    name, better, section = "ici", "lower", "calibration"
    has_interval = False
    bounds = (0.0, math.inf)

    def of(self, sketch: Sketch) -> float:
        return ici_of(sketch.tally)
