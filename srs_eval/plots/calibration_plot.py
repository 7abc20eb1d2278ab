"""Calibration: observed recall against predicted recall, smoothed rather than binned.

References
----------
J. Błasiok and P. Nakkiran, Smooth ECE, ICLR 2024, arXiv:2309.12236.
"""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from srs_eval.metrics.reliability import ReliabilityCurve, reliability_of
from srs_eval.metrics.significance import wilson_interval
from srs_eval.metrics.tally import Tally
from srs_eval.nouns import BoolArray, FloatArray, Predictions
from srs_eval.plots import style
from srs_eval.plots.reliability_axes import FEW_LEVELS, begin, finish, frame, window_of

_PIECES = 250
_Z = 1.959963984540054
_GRID_POINTS = 1001


def plot_calibration(
    axes: Axes,
    p: ArrayLike | Predictions | Tally,
    recalled: ArrayLike | None = None,
    *,
    label: str = "",
    colour: str = style.BLUE,
    outcomes: bool = True,
    limits: tuple[float, float] | None = None,
) -> ReliabilityCurve | None:
    """Draw a smooth reliability diagram.

    The curve is thicker and darker where there are more predictions. Its grey band holds
    pointwise at 95 %, as does the ± of SmoothECE. The pale band along the diagonal is where
    19 of 20 curves would be at each place if predictions were calibrated, and "by chance" the
    SmoothECE they would have. A model with at most 20 distinct predictions gets one dot for
    each, with a 95 % Wilson interval.

    Parameters
    ----------
    axes : Axes
        Where to draw; no other matplotlib state is touched.
    p, recalled : float [n], in [0, 1], and bool [n]
        Predicted recall, and outcome; or predictions of a run alone.
    label, colour : str
        Name in the legend, and any matplotlib colour.
    outcomes : bool
        Draw the density of predictions by outcome above the axes.
    limits : (float, float), optional
        Range of both axes. By default it holds 99.8 % of the predictions; others are counted.

    Returns
    -------
    ReliabilityCurve or None
        What was drawn; None if there are no predictions.

    Raises
    ------
    ScoreError
        If `p` and `recalled` cannot be scored.
    """
    reviews = style.tally_of(p, recalled)
    if not begin(axes, reviews):
        return None
    curve = reliability_of(reviews, points=_GRID_POINTS)
    shown = _worth_showing(curve, reviews.p)
    if len(reviews) <= FEW_LEVELS:
        ends = np.concatenate(wilson_interval(reviews.recalled, reviews.count, level=0.95))
        frame(axes, limits or window_of(reviews, np.tile(reviews.p, 2), ends))
        _draw_levels(axes, reviews, colour, label)
    else:
        frame(axes, limits or window_of(reviews, curve.p_grid[shown], curve.observed[shown]))
        _draw_curve(axes, curve, shown, colour, label)
    drawn = curve.p_grid[shown], curve.observed[shown], curve.lo[shown], curve.hi[shown]
    lines = [_smece_text(curve), _chance_text(curve)]
    finish(axes, reviews, lines, drawn, outcomes=outcomes)
    return curve


def calibration_figure(reviews: Predictions | Tally, *, title: str = "") -> Figure:
    """Draw the calibration of all predictions together; `title` says whose they are."""
    return style.square_figure(
        "calibration", title, style.STRIP, lambda axes: plot_calibration(axes, reviews)
    )


def _smece_text(curve: ReliabilityCurve) -> str:
    """Write SmoothECE with the half-width of its 95 % interval, as in ``smECE 0.030 ± 0.006``."""
    digits = _digits(curve)
    if not math.isfinite(curve.half_width):
        return f"smECE {curve.smece:.{digits}f}"
    return f"smECE {curve.smece:.{digits}f} ± {curve.half_width:.{digits}f} (95 %)"


def _chance_text(curve: ReliabilityCurve) -> str:
    """Write the SmoothECE of calibrated predictions, as in ``by chance if calibrated: 0.004``."""
    return f"by chance if calibrated: {curve.smece_floor:.{_digits(curve)}f}"


def _digits(curve: ReliabilityCurve) -> int:
    """As many digits as the half-width has meaning: two if it begins with 1 or 2, else one."""
    half = curve.half_width
    return min(max(3, math.ceil(-math.log10(half / 3))), 5) if half > 0 else 3


def _worth_showing(curve: ReliabilityCurve, p: FloatArray) -> BoolArray:
    """Mark grid points that lie among predictions and average over at least about twenty."""
    grid = curve.p_grid
    step = grid[1] - grid[0]
    # Kish's effective number of reviews under a Gaussian kernel.
    effective = curve.n * curve.density * 2 * math.sqrt(math.pi) * curve.sigma
    among = (grid >= p.min() - step) & (grid <= p.max() + step)
    return np.asarray(among & np.isfinite(curve.observed) & (effective >= min(20, curve.n / 15)))


def _draw_levels(axes: Axes, levels: Tally, colour: str, label: str) -> None:
    count, observed = levels.count, levels.recalled / levels.count
    chance = _Z * np.sqrt(levels.p * (1 - levels.p) / count)
    null = np.clip([levels.p - chance, levels.p + chance], 0, 1)
    axes.vlines(levels.p, *null, color=style.CHANCE, lw=7, zorder=1, label="95 % if calibrated")
    lo, hi = wilson_interval(levels.recalled, count, level=0.95)
    axes.vlines(levels.p, lo, hi, color=colour, lw=1.4, zorder=3, label="95 % interval")
    axes.scatter(
        levels.p,
        observed,
        s=18 + 70 * count / count.max(),
        color=colour,
        edgecolor="white",
        linewidth=0.8,
        zorder=4,
        clip_on=False,
        label=label or "each distinct prediction",
    )


def _draw_curve(
    axes: Axes, curve: ReliabilityCurve, shown: BoolArray, colour: str, label: str
) -> None:
    # Square roots keep the thinly populated part of the curve visible beside its peak.
    weight = np.sqrt(curve.density / curve.density[shown].max()) if shown.any() else curve.density
    at = np.stack([curve.p_grid, curve.observed], 1)
    pieces, strength = [], []
    for run in _runs(shown):
        strength.append((weight[run[:-1]] + weight[run[1:]]) / 2)
        pieces.append(np.stack([at[run[:-1]], at[run[1:]]], 1))
        grid = curve.p_grid[run]
        axes.fill_between(
            grid, curve.null_lo[run], curve.null_hi[run], color=style.CHANCE, lw=0, zorder=0.8
        )
        here = curve.observed[run]
        lo, hi = (np.where(np.isfinite(e[run]), e[run], here) for e in (curve.lo, curve.hi))
        axes.fill_between(grid, lo, hi, color=style.BAND, lw=0, alpha=0.75, zorder=1)
    axes.plot([], [], color=colour, lw=3.5, label=label or "smoothed (thicker: more predictions)")
    axes.fill_between([], [], color=style.BAND, alpha=0.75, lw=0, label="95 % band of the curve")
    axes.fill_between([], [], color=style.CHANCE, lw=0, label="95 % band if calibrated")
    if not pieces:
        return
    share = np.concatenate(strength)
    order = np.argsort(share, kind="stable")
    axes.add_collection(
        LineCollection(
            list(np.concatenate(pieces)[order]),
            colors=style.tints(colour, 0.45 + 0.55 * share)[order],
            linewidths=1.2 + 4 * share[order],
            capstyle="round",
            zorder=3,
        ),
        autolim=False,
    )


def _runs(shown: BoolArray) -> list[np.ndarray[tuple[int], np.dtype[np.intp]]]:
    """Split the marked grid points into unbroken runs, thinned to a bounded number of pieces."""
    marked = np.flatnonzero(shown)
    stride = max(1, len(marked) // _PIECES)
    runs = np.split(marked, np.flatnonzero(np.diff(marked) > 1) + 1)
    thinned = [np.append(run[:-1:stride], run[-1]) for run in runs if len(run)]
    return [run for run in thinned if len(run) > 1]
