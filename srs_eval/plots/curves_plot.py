"""Forgetting curves over elapsed days, and observed recall over the same time axis."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from srs_eval.data.reviews import BoolArray, FloatArray, IntArray
from srs_eval.metrics.predictions import Curves, Predictions
from srs_eval.metrics.significance import wilson_interval
from srs_eval.metrics.temporal import reviews_of_curves, temporal_rates
from srs_eval.plots import style

# Whole days below 23 have cells of their own; later ones share those of 4 % in width.
CELLS_PER_DOUBLING = 16
# Times from below a second to 358 years; others are clipped.
DOUBLINGS = 17
CELLS = 1 + 2 * DOUBLINGS * CELLS_PER_DOUBLING
BINS = 14
FEWEST = 20
_FAN = 150
_MARKS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500)
# The median of more curves than these looks the same.
_COHORT = 2000
# Light orange to dark purple: ordered in grey too, and dark enough on white throughout.
_SHADES = LinearSegmentedColormap.from_list(
    "reviews", ["#F0A020", "#D55E00", "#A8327D", "#3B1F8F"], N=64
)


def forgetting_figure(
    totals: FloatArray,
    curves: Curves | None,
    *,
    nth_review: IntArray | None = None,
    title: str = "",
) -> Figure | None:
    """Draw a sample of forgetting curves beside recall over elapsed time, predicted and observed.

    The two panels answer different questions. On the left, one history at many elapsed times; on
    the right, the reviews that happened, in which long intervals belong to well-known cards.
    `totals` are those of `elapsed_sums`; `nth_review`, the review that each curve belongs to,
    colours the curves. None where the model has no forgetting curve or none was sampled.
    """
    if curves is None or not _usable(curves).any():
        return None
    with style.titled_figure("forgetting curves", title) as figure:
        fan, beside = figure.subplots(1, 2, sharex=True)
        shades = plot_temporal(fan, curves, nth_review=nth_review)
        _draw_recall(beside, recall_of(totals))
        _set_time_axis(fan)
        if shades is not None:
            marks: dict[str, Any] = {"ticks": _MARKS, "format": "%g", "extend": "max"}
            style.add_colour_bar(figure, fan, shades, "nth review of the card", **marks)
    return figure


def nth_review_of_curves(predictions: Predictions) -> IntArray | None:
    """Return the number of the review that each forgetting curve belongs to: int64 [curves]."""
    if predictions.nth_review is None or predictions.curves is None:
        return None
    return predictions.nth_review[reviews_of_curves(predictions)]


def plot_temporal(
    axes: Axes, curves: Curves, *, nth_review: IntArray | None = None
) -> ScalarMappable | None:
    """Draw a fan of forgetting curves with their median, and say how often recall fails to fall.

    At most 150 curves are drawn, evenly spread over the sample. The median is taken over the
    curves that reach as far as half of them do. The words count pairs of times of each curve:
    see `temporal_rates`.

    Parameters
    ----------
    axes : Axes
        Where to draw; no other matplotlib state is touched.
    curves : Curves
        Times without a prediction are NaN.
    nth_review : int64 [curves], optional
        Which review of its card each curve belongs to: it colours the curves.

    Returns
    -------
    ScalarMappable or None
        What the colours mean, for a colour bar; None where curves have no colour.
    """
    style.style_axes(axes)
    axes.set(xlabel="elapsed days", ylabel="predicted recall", ylim=(0, 1.01))
    usable = _usable(curves)
    if not usable.any():
        style.write_message(axes, "no forgetting curves")
        return None
    sample = _spread(len(curves.p), _FAN)
    lines = [np.stack([curves.elapsed[i], curves.p[i]], 1)[usable[i]] for i in sample]
    fan = LineCollection(lines, colors=style.MUTED, linewidths=0.8, alpha=0.55, zorder=2)
    shades = None
    if nth_review is not None:
        ordinal = np.maximum(nth_review[sample], 1)
        # Beyond the 95th percentile they share the last colour.
        top = max(3.0, float(np.quantile(ordinal, 0.95)))
        shades = ScalarMappable(LogNorm(1, top, clip=True), _SHADES)
        fan.set_color(list(shades.to_rgba(ordinal)))
    axes.add_collection(fan)
    times, median = _median_curve(curves, usable)
    axes.plot(times, median, color="white", lw=4.6, zorder=3)
    axes.plot(times, median, color=style.INK, lw=2.4, zorder=4, label="median curve")
    number = style.counted(len(curves.p), "sampled curve")
    number = f"{len(sample)} of {number}" if len(sample) < len(curves.p) else number
    axes.plot([], [], color=style.MUTED, lw=0.8, label=number)
    style.write_key(axes, [_violation_text(curves)], "lower left")
    axes.autoscale_view(scaley=False)
    return shades


def _violation_text(curves: Curves) -> str:
    """Write at which share of the pairs of times predicted recall does not fall."""
    rising, flat = temporal_rates(curves)
    if np.isnan(rising).all():
        return "one elapsed time only: no pair to compare"
    rise, stay = float(np.nanmean(rising)), float(np.nanmean(flat))
    if not rise + stay:
        return "recall falls at every later time"
    parts = f"(rising {_percent(rise)}, flat {_percent(stay)})"
    return f"not falling: {_percent(rise + stay)} of pairs\n{parts}"


def _draw_recall(axes: Axes, recall: RecallOverTime) -> None:
    """Draw observed recall and the mean prediction of the same reviews by elapsed days.

    Whole days below 23 are never split. Bars are 95 % Wilson intervals. Reviews on the day of
    the one before are left out and counted.
    """
    style.style_axes(axes)
    axes.set(xlabel="elapsed days", ylabel="recall")
    if recall.same_day:
        beside = style.counted(recall.same_day, "same-day review")
        axes.set_xlabel(f"elapsed days\n({beside} not shown)")
    if not len(recall.n):
        style.write_message(axes, "no reviews on later days")
        return
    line: dict[str, Any] = {"color": style.BLUE, "ms": 5, "mfc": "white", "lw": 1.2}
    axes.plot(recall.days, recall.predicted, "D-", label="mean prediction", **line)
    lo, hi = wilson_interval(recall.recalled, recall.n, level=0.95)
    dots: dict[str, Any] = {"fmt": "o", "color": style.INK, "ms": 4.5, "elinewidth": 1.2}
    dots["label"] = "observed recall (95 % interval)"
    around = recall.observed - lo, hi - recall.observed
    axes.errorbar(recall.days, recall.observed, around, zorder=3, **dots)
    # At least 0.1 from bottom to top, so that small differences look small.
    low, high = axes.get_ylim()
    spare = max(0.0, 0.1 - (high - low)) / 2
    axes.set_ylim(max(-0.01, low - spare), min(1.01, high + spare))
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0)


def _percent(share: float) -> str:
    """Write a share in percent: two digits of small ones, and 0 only if it is."""
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"


def _usable(curves: Curves) -> BoolArray:
    """Points that can be drawn [n, k]."""
    return np.isfinite(curves.p) & (curves.elapsed > 0)


def _spread(number: int, most: int) -> IntArray:
    """Choose evenly spaced indices."""
    return np.unique(np.linspace(0, number - 1, min(most, number)).astype(np.int64))


def _median_curve(curves: Curves, usable: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Compute the median at 80 times, over the curves that reach as far as half of them do.

    The same curves all along: were others to end on the way, the median would jump.
    """
    begin = np.where(usable, curves.elapsed, np.inf).min(axis=1)
    end = np.where(usable, curves.elapsed, -np.inf).max(axis=1)
    last = float(np.quantile(end[usable.any(1)], 0.5, method="lower"))
    cohort = np.flatnonzero(end >= last)
    cohort = cohort[_spread(len(cohort), _COHORT)]
    grid = np.geomspace(begin[cohort].max(), last, 80)
    values = [
        np.interp(np.log(grid), np.log(curves.elapsed[i, mask]), curves.p[i, mask])
        for i, mask in zip(cohort, usable[cohort], strict=True)
    ]
    return grid, np.median(values, axis=0)


def _set_time_axis(axes: Axes) -> None:
    """Make the time axis logarithmic if what was drawn spans more than a factor of ten."""
    spans = [panel.dataLim.intervalx for panel in axes.get_shared_x_axes().get_siblings(axes)]
    low, high = float(np.min(spans)), float(np.max(spans))
    if high > 10 * low:
        axes.set(xscale="log", xlim=(low / 1.15, high * 1.15))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda days, _: f"{days:g}"))
        # A tick takes long to draw.
        axes.xaxis.set_minor_locator(LogLocator(subs=(2, 5)))
        axes.xaxis.set_minor_formatter(NullFormatter())


def elapsed_sums(predictions: Predictions) -> FloatArray:
    """Add up reviews after about equally long intervals: [CELLS, 5].

    The first cell is for reviews on the day of the one before, and for those whose interval is not
    known. Columns: reviews on a later day, how many of them were recalled, the sums of their
    predictions and of the logarithms of their elapsed days; the other reviews.
    """
    days = predictions.elapsed_days
    days = np.zeros(len(predictions)) if days is None else days
    later = days > 0
    log_days = np.log(days, out=np.zeros(len(days)), where=later)
    columns = later, predictions.recalled & later, predictions.p * later, log_days, ~later
    cell = elapsed_cell(days)
    return np.stack([np.bincount(cell, column, CELLS) for column in columns], axis=1)


def elapsed_cell(days: FloatArray) -> IntArray:
    """Find the cell of each review by its elapsed days [n]."""
    later = days > 0
    # Powers of two have exact logarithms, so whole days begin cells where they can.
    octave = np.log2(days, out=np.zeros(len(days)), where=later)
    place = np.floor((octave + DOUBLINGS) * CELLS_PER_DOUBLING).astype(np.int64)
    return np.where(later, 1 + np.clip(place, 0, CELLS - 2), 0)


class RecallOverTime(NamedTuple):
    """Recall in bins of elapsed days."""

    days: FloatArray  # [bins], increasing: Geometric mean of the elapsed days in each bin
    n: FloatArray  # [bins]: Reviews
    recalled: FloatArray  # [bins]: How many of them were recalled
    predicted: FloatArray  # [bins]: Mean prediction of the same reviews
    same_day: float  # Reviews that are in no bin: on the day of the one before

    @property
    def observed(self) -> FloatArray:
        """Share of the reviews in each bin that were recalled, float64 [bins]."""
        return np.asarray(self.recalled / self.n)


def recall_of(totals: FloatArray) -> RecallOverTime:
    """Join the cells of `elapsed_sums` to bins of about equally many reviews; no cell is split.

    There are at most 14 bins, and no more than lets each hold about 20 reviews.
    """
    cells = totals[totals[:, 0] > 0]
    number = float(cells[:, 0].sum())
    bins = int(np.clip(number // FEWEST, 1, BINS))
    # A cell goes where the middle of its reviews lies.
    middle = np.cumsum(cells[:, 0]) - cells[:, 0] / 2
    which = np.minimum((middle / max(number, 1.0) * bins).astype(np.int64), bins - 1)
    first = np.flatnonzero(np.diff(which, prepend=-1))
    sums = np.add.reduceat(cells, first) if len(cells) else cells
    n, recalled, predicted, log_days, _ = sums.T
    same_day = float(totals[:, 4].sum())
    return RecallOverTime(np.exp(log_days / n), n, recalled, predicted / n, same_day)
