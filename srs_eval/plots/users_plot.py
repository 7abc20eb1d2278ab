"""How scores differ from user to user."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from srs_eval.data.reviews import FloatArray
from srs_eval.metrics.means import clipped, mean_of_users
from srs_eval.metrics.metric import UNBOUNDED, Better
from srs_eval.plots import style

_KEY = "line: median; diamond: mean with its 99 % interval over users"
_DOTS = 60
_BINS = 60
_MANY = 200


def plot_user_scores(
    axes: Axes,
    scores: ArrayLike,
    *,
    name: str = "score",
    better: Better = "neither",
    bounds: tuple[float, float] = UNBOUNDED,
) -> None:
    """Draw the distribution of one metric over users, with its median and mean.

    Up to 60 users are dots, more are a histogram. The mean carries the 99 %
    interval over users that the tables print. With 200 users or more the axis
    spans the central 99 % of them, and the text counts the others.

    Parameters
    ----------
    axes : Axes
        Where to draw; no other matplotlib state is touched.
    scores : float [users]
        One score per user; NaN where it is not defined.
    name : str
        Name of the metric.
    better : str
        Which way is better: ``lower``, ``higher``, nearest to ``zero``, or ``neither``.
    bounds : (float, float)
        Range of the metric, at which the interval is cut off.
    """
    every = np.asarray(scores, np.float64)
    defined = np.sort(every[np.isfinite(every)])
    style.style_axes(axes)
    axes.spines["left"].set_visible(False)
    axes.set_yticks([])
    way = {"neither": "", "zero": " (zero is best)"}.get(better, f" ({better} is better)")
    axes.set_title(f"{name}{way}", loc="left", fontsize=style.SMALL + 0.5, pad=2)
    absent = len(every) - len(defined)
    notes = [f"not defined for {style.counted(absent, 'user')}"] if absent else []
    if not len(defined):
        axes.set_xticks([])
        style.write_message(axes, notes[0] if notes else "no users")
        return
    interval = clipped(mean_of_users(defined).interval(), bounds)
    middle = np.quantile(defined, (0.005, 0.995) if len(defined) >= _MANY else (0, 1))
    low, high = _padded([*middle, *interval])
    axes.set(xlim=(low, high), ylim=(-0.42, 1.06))
    axes.locator_params("x", nbins=5)  # more would touch
    axes.axhline(0, color=style.MUTED, lw=0.6)
    outside = int(((defined < low) | (defined > high)).sum())
    notes += [f"{style.counted(outside, 'user')} outside"] if outside else []
    _draw_distribution(axes, defined, low, high)
    axes.set_xlabel(_draw_centre(axes, defined, interval), fontsize=style.SMALL)
    font = {"fontsize": style.SMALL - 1, "color": style.MUTED, "ha": "right", "va": "top"}
    axes.text(1, 0.97, "\n".join(notes), font, transform=axes.transAxes)


def users_figure(
    scores: Mapping[str, FloatArray],
    *,
    better: Mapping[str, Better] = MappingProxyType({}),
    bounds: Mapping[str, tuple[float, float]] = MappingProxyType({}),
    title: str = "",
) -> Figure:
    """Draw one row for each metric: the distribution of its scores over users.

    Scores are [users] in the same order, NaN where not defined; `better` and `bounds` are the
    directions and ranges of metrics.
    """
    users = max((len(values) for values in scores.values()), default=0)
    columns = 1 if len(scores) < 4 else 2
    rows = max(1, -(-len(scores) // columns))
    kind, height = f"scores of {style.counted(users, 'user')}", max(2.2, 0.5 + 1.25 * rows)
    with style.titled_figure(kind, title, height=height) as figure:
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, (name, values) in zip(panels, scores.items(), strict=False):
            way, ends = better.get(name, "neither"), bounds.get(name, UNBOUNDED)
            plot_user_scores(axes, values, name=name, better=way, bounds=ends)
        for axes in panels[len(scores) :]:
            axes.axis("off")
        if not scores:
            style.write_message(panels[0], "no scores")
        if users > 1:
            style.annotate(figure, _KEY)
    return figure


def _padded(ends: ArrayLike) -> tuple[float, float]:
    """Return the range of some ends, with a margin."""
    low, high = float(np.nanmin(ends)), float(np.nanmax(ends))
    margin = 0.04 * (high - low) or max(0.05 * abs(high), 0.01)
    return low - margin, high + margin


def _draw_distribution(axes: Axes, ordered: FloatArray, low: float, high: float) -> None:
    edges = np.linspace(low, high, _BINS + 1)
    if len(ordered) > _DOTS:
        count, _ = np.histogram(ordered, edges)
        axes.stairs(count / count.max(), edges, fill=True, color=style.BLUE, alpha=0.45, lw=0)
        return
    cell = np.minimum(np.searchsorted(edges, ordered, side="right") - 1, _BINS - 1)
    rank = np.arange(len(ordered)) - np.searchsorted(cell, cell)
    step = min(0.2, 0.85 / max(1, int(rank.max())))
    axes.plot(ordered, 0.12 + step * rank, "o", color=style.BLUE, ms=5.5, mec="white", mew=0.6)


def _draw_centre(axes: Axes, ordered: FloatArray, interval: tuple[float, float]) -> str:
    """Draw median and mean below the distribution, and write them."""
    mean, (lo, hi) = float(ordered.mean()), interval
    if len(ordered) == 1:
        return f"{mean:.4f}"
    median = float(np.median(ordered))
    axes.vlines(median, 0, 1, color=style.INK, lw=1.4)
    axes.hlines(-0.21, lo, hi, color=style.VERMILION, lw=2)
    axes.plot([mean], [-0.21], "D", color=style.VERMILION, ms=5, mec="white", mew=0.6)
    digits = 4 if math.isnan(lo) else 3
    if hi > lo:  # two digits of its width
        digits = min(max(3, 1 - math.floor(math.log10(hi - lo))), 5)
    ends = "" if math.isnan(lo) else f" [{lo:.{digits}f}, {hi:.{digits}f}]"
    return f"median {median:.{digits}f}, mean {mean:.{digits}f}{ends}"
