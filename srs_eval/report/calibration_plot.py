"""Calibration: observed recall against predicted recall, smoothed rather than binned.

References
----------
J. Błasiok and P. Nakkiran, Smooth ECE, ICLR 2024, arXiv:2309.12236.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from srs_eval.metrics.reliability import ReliabilityCurve, reliability_curve
from srs_eval.metrics.validate import paired
from srs_eval.nouns import BoolArray, FloatArray, Predictions
from srs_eval.report.outcome_strip import draw_outcome_strip
from srs_eval.report.style import (
    BAND,
    BLUE,
    MUTED,
    NORMAL,
    SMALL,
    counted,
    dress,
    heading,
    house_style,
    new_figure,
    say,
    tints,
    wilson_interval,
)

_FEW = 20
_PIECES = 250
_GRID_POINTS = 1001

Corner = Literal["upper left", "lower right"]


@dataclass(frozen=True, slots=True)
class _Levels:
    """The distinct predictions of a model that makes only a few, and what came of each."""

    p: FloatArray
    observed: FloatArray
    count: FloatArray


def plot_calibration(
    axes: Axes,
    p: ArrayLike,
    recalled: ArrayLike,
    *,
    label: str = "",
    colour: str = BLUE,
    outcomes: bool = True,
    limits: tuple[float, float] | None = None,
) -> ReliabilityCurve | None:
    """Draw a smooth reliability diagram.

    The curve is thicker and darker where there are more predictions. Its band holds pointwise
    at 95 %, as does the ± of SmoothECE. A model with at most 20 distinct predictions gets one
    dot for each, with a 95 % Wilson interval.

    Parameters
    ----------
    axes : Axes
        Where to draw; no other matplotlib state is touched.
    p, recalled : float [n], in [0, 1], and bool [n]
        Predicted recall, and outcome.
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
    probability, outcome = paired(p, recalled)
    axes.set(xlabel="predicted recall", ylabel="observed recall", aspect="equal")
    dress(axes)
    if not len(probability):
        say(axes, "no predictions")
        return None
    curve = reliability_curve(probability, outcome, points=_GRID_POINTS)
    levels = _few_levels(probability, outcome)
    shown = _worth_showing(curve, probability)
    if levels:
        _frame(axes, limits or _window(probability, levels.p, levels.observed))
        _draw_levels(axes, levels, colour, label)
    else:
        _frame(axes, limits or _window(probability, curve.p_grid[shown], curve.observed[shown]))
        _draw_curve(axes, curve, shown, colour, label)
    _write_key(axes, curve, probability, corner=_free_corner(axes, curve, shown))
    if outcomes:
        draw_outcome_strip(axes, probability, outcome)
    return curve


def calibration_figure(predictions: Predictions, *, title: str = "", label: str = "") -> Figure:
    """Draw the calibration of all predictions together; `title` says whose they are."""
    with house_style():
        figure = new_figure(5, 6.15)
        axes = figure.add_subplot()
        plot_calibration(axes, predictions.p, predictions.recalled, label=label)
        axes.set_title(heading("calibration", title))
    return figure


def smece_text(curve: ReliabilityCurve) -> str:
    """Write SmoothECE with the half-width of its 95 % interval, as in ``smECE 0.030 ± 0.006``."""
    half = curve.half_width
    if not math.isfinite(half):
        return f"smECE {curve.smece:.3f}"
    # As many digits as the half-width has meaning: two if it begins with 1 or 2, else one.
    digits = 3 if half <= 0 else min(max(3, math.ceil(-math.log10(half / 3))), 5)
    return f"smECE {curve.smece:.{digits}f} ± {half:.{digits}f} (95 %)"


def _few_levels(p: FloatArray, recalled: BoolArray) -> _Levels | None:
    if len(np.unique(p[:1000])) > _FEW:
        return None
    values, which, count = np.unique(p, return_inverse=True, return_counts=True)
    if len(values) > _FEW:
        return None
    return _Levels(values, np.bincount(which, weights=recalled) / count, count.astype(np.float64))


def _worth_showing(curve: ReliabilityCurve, p: FloatArray) -> BoolArray:
    """Mark grid points that lie among predictions and average over at least about twenty."""
    grid = curve.p_grid
    step = grid[1] - grid[0]
    # Kish's effective number of reviews under a Gaussian kernel.
    effective = curve.n * curve.density * 2 * math.sqrt(math.pi) * curve.sigma
    among = (grid >= p.min() - step) & (grid <= p.max() + step)
    return np.asarray(among & np.isfinite(curve.observed) & (effective >= min(20, curve.n / 15)))


def _frame(axes: Axes, limits: tuple[float, float]) -> None:
    """Set the range of both axes, and draw the diagonal on which a model would be calibrated."""
    # A little room, so that a curve along the edge keeps its full thickness.
    pad = 0.012 * (limits[1] - limits[0])
    padded = (limits[0] - pad, limits[1] + pad)
    axes.set(xlim=padded, ylim=padded)
    axes.plot([0, 1], [0, 1], color=MUTED, lw=1, ls=(0, (4, 3)), zorder=1.5, label="perfect")


def _window(p: FloatArray, at: FloatArray, heights: FloatArray) -> tuple[float, float]:
    """Choose one range for both axes: round numbers, at least 0.3 wide.

    It holds 99.8 % of the predictions, and what is drawn at `at` among them.
    """
    low, high = np.quantile(p, [0.001, 0.999])
    among = heights[(at >= low) & (at <= high)]
    if len(among):
        low, high = min(low, among.min()), max(high, among.max())
    low, high = math.floor(10 * low + 1e-6) / 10, math.ceil(10 * high - 1e-6) / 10
    low, high = (0.0 if low < 0.25 else low), (1.0 if high > 0.75 else high)
    while high - low < 0.3 - 1e-9:
        low, high = (round(low - 0.1, 1), high) if low > 1 - high else (low, round(high + 0.1, 1))
    return float(low), float(high)


def _draw_levels(axes: Axes, levels: _Levels, colour: str, label: str) -> None:
    lo, hi = wilson_interval(levels.observed * levels.count, levels.count)
    axes.vlines(levels.p, lo, hi, color=colour, lw=1.4, zorder=3, label="95 % interval")
    axes.scatter(
        levels.p,
        levels.observed,
        s=18 + 70 * levels.count / levels.count.max(),
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
    lower, upper = (
        np.where(np.isfinite(edge), edge, curve.observed) for edge in (curve.lo, curve.hi)
    )
    pieces, quads, strength = [], [], []
    for run in _runs(shown):
        middle = (weight[run[:-1]] + weight[run[1:]]) / 2
        strength.append(middle)
        at = np.stack([curve.p_grid, curve.observed], 1)
        low, high = np.stack([curve.p_grid, lower], 1), np.stack([curve.p_grid, upper], 1)
        pieces.append(np.stack([at[run[:-1]], at[run[1:]]], 1))
        quads.append(np.stack([low[run[:-1]], low[run[1:]], high[run[1:]], high[run[:-1]]], 1))
    axes.fill_between([], [], color=BAND, label="95 % band")
    axes.plot([], [], color=colour, lw=3.5, label=label or "smoothed (thicker: more predictions)")
    if not pieces:
        return
    share = np.concatenate(strength)
    order = np.argsort(share, kind="stable")
    band = tints(BAND, 0.3 + 0.7 * share)[order]
    axes.add_collection(
        PolyCollection(
            list(np.concatenate(quads)[order]), facecolors=band, edgecolors=band, lw=1, zorder=1
        ),
        autolim=False,
    )
    axes.add_collection(
        LineCollection(
            list(np.concatenate(pieces)[order]),
            colors=tints(colour, 0.45 + 0.55 * share)[order],
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


def _free_corner(axes: Axes, curve: ReliabilityCurve, shown: BoolArray) -> Corner:
    """Choose the corner that curve and band keep out of."""
    low, span = axes.get_xlim()[0], float(np.ptp(axes.get_xlim()))
    across = (curve.p_grid[shown] - low) / span
    top, bottom = ((edge[shown] - low) / span for edge in (curve.hi, curve.lo))
    in_top_left = ((across < 0.58) & (top > 0.68)).sum()
    in_bottom_right = ((across > 0.42) & (bottom < 0.32)).sum()
    return "upper left" if in_top_left <= in_bottom_right else "lower right"


def _write_key(axes: Axes, curve: ReliabilityCurve, p: FloatArray, *, corner: Corner) -> None:
    low, high = axes.get_xlim()
    below, above = int((p < low).sum()), int((p > high).sum())
    lines = [smece_text(curve), f"n = {counted(len(p), 'review')}"]
    lines += [f"{below:,} predicted below {low:.2f} not shown"] if below else []
    lines += [f"{above:,} predicted above {high:.2f} not shown"] if above else []
    legend = axes.legend(
        loc=corner,
        title="\n".join(lines),
        title_fontsize=NORMAL,
        fontsize=SMALL,
        handlelength=1.6,
    )
    legend.set_alignment("left")
    legend.set(frame_on=True, zorder=5)
    legend.get_frame().set(facecolor="white", edgecolor="none", alpha=0.8)
