"""Calibration: observed recall against predicted recall, smoothed rather than binned.

References
----------
J. Błasiok and P. Nakkiran, Smooth ECE, ICLR 2024, arXiv:2309.12236.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from srs_eval.data.reviews import BoolArray, FloatArray
from srs_eval.metrics.predictions import Predictions
from srs_eval.metrics.reliability import ReliabilityCurve, reliability_of
from srs_eval.metrics.significance import wilson_interval
from srs_eval.metrics.tally import Tally
from srs_eval.plots import style

# Models with at most as many distinct predictions have a dot for each.
_FEW_LEVELS = 20
_GRID_POINTS = 501
_DENSITY_BINS = 80
_Z = 1.959963984540054


def plot_calibration(
    axes: Axes,
    p: ArrayLike | Predictions | Tally,
    recalled: ArrayLike | None = None,
    *,
    label: str = "",
    colour: str = style.BLUE,
) -> ReliabilityCurve | None:
    """Draw a smooth reliability diagram.

    The curve is thicker and darker where there are more predictions. Its grey band holds
    pointwise at 95 %, as does the ± of SmoothECE. The pale band along the diagonal is where
    19 of 20 curves would be at each place if predictions were calibrated, and "by chance" the
    SmoothECE they would have. A model with at most 20 distinct predictions gets one dot for
    each, with a 95 % Wilson interval. The axes hold 99.8 % of the predictions; others are counted.

    Parameters
    ----------
    axes : Axes
        Where to draw; no other matplotlib state is touched.
    p, recalled : float [n], in [0, 1], and bool [n]
        Predicted recall, and outcome; or predictions of a run alone.
    label, colour : str
        Name in the legend, and any matplotlib colour.

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
    axes.set(xlabel="predicted recall", ylabel="observed recall", aspect="equal")
    style.style_axes(axes)
    if not len(reviews):
        style.write_message(axes, "no predictions")
        return None
    curve = reliability_of(reviews, points=_GRID_POINTS)
    style.draw_diagonal(axes, "perfect")
    if len(reviews) <= _FEW_LEVELS:
        low, high = _draw_levels(axes, reviews, colour, label)
    else:
        low, high = _draw_curve(axes, curve, reviews, colour, label)
    # A little room, so that a curve along the edge keeps its full thickness.
    room = 0.012 * (high - low)
    low, high = low - room, high + room
    axes.set(xlim=(low, high), ylim=(low, high))
    _draw_outcomes(axes, reviews)
    below, above = (reviews.count[far].sum() for far in (reviews.p < low, reviews.p > high))
    lines = [*_smece_lines(curve), f"n = {style.counted(reviews.n, 'review')}"]
    lines += [f"{round(below):,} predicted below {low:.2f} not shown"] if below else []
    lines += [f"{round(above):,} predicted above {high:.2f} not shown"] if above else []
    style.write_key(axes, lines, "best")
    return curve


def calibration_figure(reviews: Predictions | Tally, *, title: str = "") -> Figure:
    """Draw the calibration of all predictions together; `title` says whose they are."""
    return style.square_figure("calibration", title, lambda axes: plot_calibration(axes, reviews))


def _smece_lines(curve: ReliabilityCurve) -> list[str]:
    """Write SmoothECE with its interval, and SmoothECE of calibrated predictions.

    The half-width of the interval has two digits if it begins with 1 or 2, else one.
    """
    half = curve.half_width
    digits = min(max(3, math.ceil(-math.log10(half / 3))), 5) if half > 0 else 3
    interval = f" ± {half:.{digits}f} (95 %)" if math.isfinite(half) else ""
    chance = f"by chance if calibrated: {curve.smece_floor:.{digits}f}"
    return [f"smECE {curve.smece:.{digits}f}{interval}", chance]


def _draw_levels(axes: Axes, levels: Tally, colour: str, label: str) -> tuple[float, float]:
    """Draw a dot for each distinct prediction; return the range of what is drawn."""
    p, count = levels.p, levels.count
    chance = _Z * np.sqrt(p * (1 - p) / count)
    null = np.clip([p - chance, p + chance], 0, 1)
    axes.vlines(p, *null, color=style.CHANCE, lw=7, zorder=1, label="95 % if calibrated")
    lo, hi = wilson_interval(levels.recalled, count, level=0.95)
    axes.vlines(p, lo, hi, color=colour, lw=1.4, zorder=3, label="95 % interval")
    axes.scatter(
        p,
        levels.recalled / count,
        s=18 + 70 * count / count.max(),
        color=colour,
        edgecolor="white",
        linewidth=0.8,
        zorder=4,
        clip_on=False,
        label=label or "each distinct prediction",
    )
    return _window(levels, np.tile(p, 2), np.concatenate([lo, hi]))


def _draw_curve(
    axes: Axes, curve: ReliabilityCurve, reviews: Tally, colour: str, label: str
) -> tuple[float, float]:
    """Draw the curve over its bands, where predictions are dense; return the range of the curve."""
    dense = _dense(curve, reviews.p)
    grid = curve.p_grid
    axes.plot([], [], color=colour, lw=3.5, label=label or "smoothed (thicker: more predictions)")
    band: dict[str, Any] = {"color": style.BAND, "alpha": 0.75, "lw": 0, "zorder": 1}
    axes.fill_between(grid, curve.lo, curve.hi, dense, label="95 % band of the curve", **band)
    null: dict[str, Any] = {"color": style.CHANCE, "lw": 0, "zorder": 0.8, "where": dense}
    axes.fill_between(grid, curve.null_lo, curve.null_hi, label="95 % band if calibrated", **null)
    begin = np.flatnonzero(dense[:-1] & dense[1:])
    # Square roots keep the thinly populated part of the curve visible beside its peak.
    weight = np.sqrt(curve.density[begin] + curve.density[begin + 1])
    weight /= weight.max(initial=1e-9)
    order = np.argsort(weight, kind="stable")
    begin, weight = begin[order], weight[order]
    points = np.stack([grid, curve.observed], 1)
    pieces = LineCollection(
        list(np.stack([points[begin], points[begin + 1]], 1)),
        # Opaque tints: pieces that overlap do not darken.
        colors=LinearSegmentedColormap.from_list("weight", ["white", colour])(0.45 + 0.55 * weight),
        linewidths=1.2 + 4 * weight,
        capstyle="round",
        zorder=3,
    )
    axes.add_collection(pieces, autolim=False)
    return _window(reviews, grid[dense], curve.observed[dense])


def _dense(curve: ReliabilityCurve, p: FloatArray) -> BoolArray:
    """Mark grid points that lie among predictions and average over at least about twenty."""
    grid = curve.p_grid
    step = grid[1] - grid[0]
    among = (grid >= p.min() - step) & (grid <= p.max() + step)
    return np.asarray(among & of_twenty(curve))


def of_twenty(curve: ReliabilityCurve) -> BoolArray:
    """Mark grid points that average over at least about twenty reviews."""
    # Kish's effective number of reviews under a Gaussian kernel.
    effective = curve.n * curve.density * 2 * math.sqrt(math.pi) * curve.sigma
    return np.isfinite(curve.observed) & np.asarray(effective >= min(20, curve.n / 15))


def _window(reviews: Tally, p: FloatArray, heights: FloatArray) -> tuple[float, float]:
    """Choose one range for both axes: round numbers, at least 0.3 wide.

    It holds 99.8 % of the predictions, and the heights of what is drawn at `p` among them.
    """
    total = np.cumsum(reviews.count)
    place = np.searchsorted(total, np.array([0.001, 0.999]) * total[-1])
    low, high = reviews.p[np.minimum(place, len(reviews) - 1)]
    ends = np.append(heights[(p >= low) & (p <= high)], (low, high))
    low, high = math.floor(10 * ends.min() + 1e-6) / 10, math.ceil(10 * ends.max() - 1e-6) / 10
    low, high = (0.0 if low < 0.25 else low), (1.0 if high > 0.75 else high)
    while high - low < 0.3 - 1e-9:
        low, high = (round(low - 0.1, 1), high) if low > 1 - high else (low, round(high + 0.1, 1))
    return low, high


def _draw_outcomes(axes: Axes, reviews: Tally) -> None:
    """Draw densities of predictions above axes: recalled reviews up, forgotten ones down.

    Each outcome fills the same area, because forgetting is rare; the counts are written above.
    """
    strip = axes.inset_axes((0, 1.02, 1, 0.13), sharex=axes)
    strip.axis("off")
    edges = np.linspace(*axes.get_xlim(), _DENSITY_BINS + 1)
    up, down = (
        np.histogram(reviews.p, edges, weights=count)[0] / max(1.0, float(count.sum()))
        for count in (reviews.recalled, reviews.forgotten)
    )
    strip.stairs(up, edges, fill=True, color=style.GREEN, lw=0)
    strip.stairs(-down, edges, fill=True, color=style.VERMILION, lw=0)
    strip.axhline(0, color=style.MUTED, lw=0.6)
    # The words are darker than the areas, to be as legible.
    font: dict[str, Any] = {"fontsize": style.SMALL, "fontweight": "normal", "pad": 3}
    recalled, forgotten = round(reviews.n_recalled), round(reviews.n_forgotten)
    strip.set_title(f"▲ recalled {recalled:,}", loc="left", color="#00614A", **font)
    strip.set_title(f"▼ forgotten {forgotten:,}", loc="right", color="#A34700", **font)
