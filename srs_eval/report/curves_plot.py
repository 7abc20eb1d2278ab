"""Forgetting curves over elapsed days, and observed recall over the same time axis."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Colormap, LinearSegmentedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter, NullFormatter
from numpy.typing import NDArray

from srs_eval.nouns import Curves, FloatArray, IntArray, Predictions
from srs_eval.report.style import (
    BLUE,
    INK,
    MUTED,
    SMALL,
    counted,
    dress,
    heading,
    house_style,
    new_figure,
    wilson_interval,
)

_FAN = 150
_BINS = 14
_LEAST = 20


def forgetting_figure(
    predictions: Predictions,
    curves: Curves | None = None,
    *,
    title: str = "",
    log_time: bool = True,
) -> Figure | None:
    """Draw a sample of forgetting curves above recall over elapsed time, predicted and observed.

    The two panels answer different questions. Above, one history at many elapsed times; below,
    the reviews that happened, in which long intervals belong to well-known cards.

    Parameters
    ----------
    predictions : Predictions
        Scored reviews; `nth_review` colours the curves, `elapsed_days` makes the lower panel.
    curves : Curves, optional
        By default those of the predictions.
    title : str
        What the figure is about, such as an algorithm and a data set.
    log_time : bool
        Use a logarithmic time axis if the times span more than a factor of ten.

    Returns
    -------
    Figure or None
        None where the model has no forgetting curve or none was sampled.
    """
    curves = predictions.curves if curves is None else curves
    if curves is None or not np.isfinite(curves.p).any():
        return None
    days = predictions.elapsed_days
    with house_style():
        if days is not None and (days > 0).any():
            figure = new_figure(5.6, 6.2)
            fan, recall = figure.subplots(2, sharex=True, height_ratios=(1.5, 1))
            plot_recall_over_time(recall, predictions)
        else:
            figure = new_figure(5.6, 3.8)
            fan = figure.add_subplot()
        shades = plot_forgetting_curves(fan, curves, predictions)
        fan.set_title(heading("forgetting curves", title))
        if len(figure.axes) > 1:
            fan.set_xlabel("")
        _set_time_axis(fan, log_time=log_time)
        if shades is not None:
            _add_key(figure, fan, shades)
    return figure


def plot_forgetting_curves(
    axes: Axes, curves: Curves, predictions: Predictions | None = None
) -> ScalarMappable | None:
    """Draw a fan of forgetting curves and their median.

    At most 150 curves are drawn, evenly spread over the sample. The median is taken over all
    curves at each time that at least half of them reach.

    Parameters
    ----------
    axes : Axes
        Where to draw; no other matplotlib state is touched.
    curves : Curves
        Times without a prediction are NaN.
    predictions : Predictions, optional
        If they hold `nth_review`, it colours the curves.

    Returns
    -------
    ScalarMappable or None
        What the colours mean, for a colour bar; None where curves have no colour.
    """
    dress(axes)
    axes.set(xlabel="elapsed days", ylabel="predicted recall", ylim=(0, 1.01))
    drawn = np.unique(np.linspace(0, len(curves.p) - 1, min(_FAN, len(curves.p))).astype(np.int64))
    lines = [np.stack([curves.elapsed[i], curves.p[i]], 1) for i in drawn]
    lines = [line[np.isfinite(line).all(1) & (line[:, 0] > 0)] for line in lines]
    shades = None
    colours: NDArray[np.float64] | str = MUTED
    nth = None if predictions is None else _nth_review(curves, drawn, predictions)
    if nth is not None:
        # Beyond the 95th percentile the last colour is used.
        shades = ScalarMappable(
            LogNorm(1, max(3.0, float(np.quantile(nth, 0.95))), clip=True), _shades()
        )
        colours = shades.to_rgba(nth)
    fan = LineCollection(lines, colors=colours, linewidths=0.8, alpha=0.55, zorder=2)
    axes.add_collection(fan)
    times, median = _median_curve(curves)
    axes.plot(times, median, color="white", lw=4.6, zorder=3)
    axes.plot(times, median, color=INK, lw=2.4, zorder=4, label="median curve")
    axes.plot([], [], color=MUTED, lw=0.8, label=f"{counted(len(drawn), 'sampled curve')}")
    # Above all curves, and readable over them.
    legend = axes.legend(
        loc="lower left", handlelength=1.6, frameon=True, framealpha=0.85, edgecolor="none"
    )
    legend.set_zorder(5)
    axes.autoscale_view(scaley=False)
    return shades


def plot_recall_over_time(axes: Axes, predictions: Predictions) -> None:
    """Draw observed recall and the mean prediction of the same reviews by elapsed days.

    Bins hold about equally many reviews, at least 20; days are never split. Bars are 95 %
    Wilson intervals. Reviews on the day of the one before are left out and counted.

    Parameters
    ----------
    axes : Axes
        Where to draw; no other matplotlib state is touched.
    predictions : Predictions
        With `elapsed_days`; without them nothing is drawn.
    """
    dress(axes)
    axes.set(xlabel="elapsed days", ylabel="recall")
    if predictions.elapsed_days is None:
        return
    later = predictions.elapsed_days > 0
    days, p = predictions.elapsed_days[later], predictions.p[later]
    binned = _by_elapsed(days)
    count = np.bincount(binned).astype(np.float64)
    recalled = np.bincount(binned, weights=predictions.recalled[later]).astype(np.float64)
    # The geometric mean is the middle on a logarithmic axis.
    at = np.exp(np.bincount(binned, weights=np.log(days)) / count)
    share = recalled / count
    lo, hi = wilson_interval(recalled, count)
    predicted = np.bincount(binned, weights=p) / count
    axes.plot(at, predicted, "D-", color=BLUE, ms=5, mfc="white", lw=1.2, label="mean prediction")
    axes.errorbar(
        at,
        share,
        (share - lo, hi - share),
        fmt="o",
        color=INK,
        ms=4.5,
        elinewidth=1.2,
        zorder=3,
        label="observed recall (95 % interval)",
    )
    # At least 0.1 from bottom to top, so that small differences look small.
    low, high = axes.get_ylim()
    spare = max(0.0, 0.1 - (high - low)) / 2
    axes.set_ylim(max(-0.01, low - spare), min(1.01, high + spare))
    axes.legend(loc="lower right", bbox_to_anchor=(1, 0.98), ncols=2, borderaxespad=0)
    if not later.all():
        hidden = counted(int((~later).sum()), "same-day review")
        axes.set_xlabel(f"elapsed days ({hidden} not shown)")


def _shades() -> Colormap:
    """Light orange to dark purple: ordered in grey too, and dark enough on white throughout."""
    return LinearSegmentedColormap.from_list(
        "reviews", ["#F0A020", "#D55E00", "#A8327D", "#3B1F8F"], N=64
    )


def _nth_review(curves: Curves, drawn: IntArray, predictions: Predictions) -> FloatArray | None:
    """Look up which review of its card each drawn curve belongs to; None unless all are known."""
    if predictions.nth_review is None or not len(predictions):
        return None
    rows = 1 + max(int(predictions.row.max()), int(curves.row.max()))
    folds = 1 + max(int(predictions.fold.max()), int(curves.fold.max()))
    wanted = ((curves.user * folds + curves.fold) * rows + curves.row)[drawn]
    key = (predictions.user * folds + predictions.fold) * rows + predictions.row
    found = np.flatnonzero(np.isin(key, wanted))
    found = found[np.argsort(key[found])]
    place = np.searchsorted(key[found], wanted)
    known = place < len(found)
    if not known.all() or (key[found[place]] != wanted).any():
        return None
    return np.maximum(predictions.nth_review[found[place]], 1).astype(np.float64)


def _median_curve(curves: Curves) -> tuple[FloatArray, FloatArray]:
    """Take the median at 80 times, over the curves that reach as far as half of them do.

    The same curves all along: were others to end on the way, the median would jump.
    """
    usable = np.isfinite(curves.p) & (curves.elapsed > 0)
    begin = np.where(usable, curves.elapsed, np.inf).min(axis=1)
    end = np.where(usable, curves.elapsed, -np.inf).max(axis=1)
    last = float(np.quantile(end[usable.any(1)], 0.5, method="lower"))
    cohort = np.flatnonzero(end >= last)
    grid = np.geomspace(begin[cohort].max(), last, 80)
    values = [
        np.interp(np.log(grid), np.log(curves.elapsed[i, mask]), curves.p[i, mask])
        for i, mask in zip(cohort, usable[cohort], strict=True)
    ]
    return grid, np.median(values, axis=0)


def _by_elapsed(days: FloatArray) -> IntArray:
    """Assign reviews to bins of elapsed days, numbered in order and without gaps."""
    bins = int(np.clip(len(days) // _LEAST, 1, _BINS))
    edges = np.unique(np.quantile(days, np.linspace(0, 1, bins + 1)[1:-1], method="higher"))
    binned = np.searchsorted(edges, days, side="left")
    return np.unique(binned, return_inverse=True)[1].astype(np.int64)


def _set_time_axis(axes: Axes, *, log_time: bool) -> None:
    """Make the time axis logarithmic if that is wanted and what was drawn spans enough."""
    shared = axes.get_shared_x_axes().get_siblings(axes)
    low = min(other.dataLim.x0 for other in shared)
    high = max(other.dataLim.x1 for other in shared)
    if log_time and high > 10 * low:
        axes.set_xscale("log")
        axes.set_xlim(low / 1.15, high * 1.15)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda days, _: f"{days:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        pad = 0.03 * (high - low) or 0.5
        axes.set_xlim(max(0.0, low - pad), high + pad)


def _add_key(figure: Figure, axes: Axes, shades: ScalarMappable) -> None:
    bar = figure.colorbar(shades, ax=axes, pad=0.02, aspect=25)
    bar.set_label("nth review of the card")
    highest = shades.get_clim()[1]
    top = 3 if highest is None else int(highest)
    marks = [mark for mark in (1, 2, 3, 5, 10, 20, 50, 100, 200, 500) if mark <= top]
    bar.ax.yaxis.set_major_locator(FixedLocator(marks))
    bar.ax.yaxis.set_major_formatter(
        FixedFormatter([f"{mark}+" if mark == marks[-1] else str(mark) for mark in marks])
    )
    bar.ax.minorticks_off()
    bar.ax.tick_params(labelsize=SMALL, colors=MUTED, labelcolor=INK)
    bar.outline.set_visible(False)
