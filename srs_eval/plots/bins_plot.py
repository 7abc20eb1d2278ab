"""Where predictions are too high or too low: the bins of RMSE(bins) as a heat map."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PatchCollection
from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize, to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter
from numpy.typing import ArrayLike

from srs_eval.metrics.bins import (
    FSRS_OPTIMIZER,
    Bins,
    Scale,
    every_bin,
    mean_square,
    mean_variance,
)
from srs_eval.metrics.validate import predictions_of
from srs_eval.nouns import BoolArray, FloatArray, IntArray, Predictions
from srs_eval.plots import style

# Whole numbers up to this have their bins named: 100 years in days.
_LARGEST = 36_600
_Z = 1.959963984540054
_LIMITS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
# Bins of a smaller share of the reviews do not stretch the colours.
_NOTABLE = 0.005
_WITHIN_CHANCE = 0.62
# Names of columns that have more letters than this in all are turned.
_LETTERS = 56


@dataclass(frozen=True, slots=True)
class BinGaps:
    """Mean prediction less observed recall in bins of interval and number of reviews."""

    # Ranges of elapsed days [columns], and of numbers of reviews [rows]
    intervals: tuple[str, ...]
    reviews: tuple[str, ...]
    n: FloatArray  # [rows, columns]: Reviews in each bin
    # [rows, columns]: Mean prediction less observed recall; NaN where there are no reviews
    gap: FloatArray
    # [rows, columns]: Whether calibrated predictions would leave as large a gap in less than 5 % of
    # the cases
    beyond_chance: BoolArray
    # RMSE(bins), over bins of lapses too, and what chance alone would leave of it
    rmse: float
    floor: float


def plot_bins(
    axes: Axes,
    p: ArrayLike,
    recalled: ArrayLike,
    elapsed_days: ArrayLike,
    nth_review: ArrayLike,
    lapses: ArrayLike,
    *,
    scales: Bins = FSRS_OPTIMIZER,
) -> ScalarMappable | None:
    """Draw where predictions are too high or too low, in the bins of RMSE(bins).

    Each tile is a bin of interval and number of reviews; bins that differ in lapses only are
    added up, because most of them are nearly empty and their panels would not be comparable by
    eye. A tile says by how many points of percent the mean prediction is above observed recall,
    and its share of the reviews. Tiles are small where calibrated predictions would be as far
    off in more than 5 % of the cases. The RMSE(bins) above is over all bins, lapses included.

    Parameters
    ----------
    axes : Axes
        Where to draw; no other matplotlib state is touched.
    p, recalled, elapsed_days, nth_review, lapses
        As in `srs_eval.score`.
    scales : Bins
        Which published constants to round with.

    Returns
    -------
    ScalarMappable or None
        What the colours mean, for a colour bar; None where there is nothing to draw.

    Raises
    ------
    ScoreError
        If the facts do not fit the predictions.
    """
    facts = {"elapsed_days": elapsed_days, "nth_review": nth_review, "lapses": lapses}
    reviews = predictions_of(p=p, recalled=recalled, **facts)
    return _draw_bins(axes, bin_gaps(reviews, scales=scales))


def bins_figure(reviews: Predictions | FloatArray, *, title: str = "") -> Figure:
    """Draw the bins of RMSE(bins) of predictions, or of sums of `every_bin`: see `plot_bins`."""
    gaps = bin_gaps(reviews)
    with style.house_style():
        rows, columns = gaps.n.shape
        width = float(np.clip(1.9 + 0.62 * columns, 5.0, 9.5))
        height = float(np.clip(1.9 + 0.5 * rows, 3.4, 7.5))
        left = 0.4 + 0.075 * max(map(len, gaps.reviews), default=0)
        # The key stands beside tiles, in a share of their width; long names stand askew.
        below = 0.96 if _stand_askew(gaps) else 0.66
        margins = style.Margins(left, below, 0.72 + 0.055 * width, 0.86)
        figure = style.new_figure(width, height, margins)
        axes = figure.add_subplot()
        shades = _draw_bins(axes, gaps)
        axes.set_title(style.heading("bins", title), pad=44)
        if shades is not None:
            _add_key(figure, axes, shades)
    return figure


def bin_gaps(reviews: Predictions | FloatArray, *, scales: Bins = FSRS_OPTIMIZER) -> BinGaps:
    """Add up the bins of RMSE(bins) that differ in lapses only; empty where facts are missing."""
    if isinstance(reviews, Predictions):
        reviews = every_bin(scales, reviews)
    held = np.flatnonzero(reviews[:, 0] > 0)  # neither no reviews nor NaN
    sums = reviews[held]
    number, residual, variance = sums.T
    if not len(held):
        none = np.empty((0, 0))
        return BinGaps((), (), none, none, none > 0, math.nan, math.nan)
    both = held // (scales.lapses.count + 1)
    column, across = _places(scales.interval, both // scales.reviews.count)
    row, up = _places(scales.reviews, both % scales.reviews.count)
    shape = (len(up), len(across))
    place = row * len(across) + column
    n, gap, chance = (
        np.bincount(place, part, math.prod(shape)).reshape(shape).astype(np.float64)
        for part in (number, residual, variance)
    )
    return BinGaps(
        intervals=across,
        reviews=up,
        n=n,
        gap=np.divide(gap, n, out=np.full(shape, np.nan), where=n > 0),
        # Outcomes are whole: half a review more or less is the nearest they come.
        beyond_chance=np.abs(gap) > _Z * np.sqrt(chance) + 0.5,
        rmse=math.sqrt(mean_square(sums)),
        floor=math.sqrt(mean_variance(sums)),
    )


def _stand_askew(gaps: BinGaps) -> bool:
    """Whether the names of intervals are too long to stand beside each other."""
    return len(gaps.intervals) * max(map(len, gaps.intervals), default=0) > _LETTERS


def _draw_bins(axes: Axes, gaps: BinGaps) -> ScalarMappable | None:
    """Draw the tiles of bins: see `plot_bins`."""
    style.style_axes(axes)
    axes.set(xlabel="elapsed days", ylabel="number of the review")
    if not gaps.n.size:
        axes.set(xticks=[], yticks=[])
        style.write_message(axes, "no reviews whose days, number\nand lapses are known")
        return None
    rows, columns = gaps.n.shape
    axes.set(xlim=(-0.5, columns - 0.5), ylim=(-0.5, rows - 0.5))
    axes.set_xticks(range(columns), gaps.intervals)
    axes.set_yticks(range(rows), gaps.reviews)
    if _stand_askew(gaps):
        axes.tick_params(axis="x", labelrotation=30)
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(length=0)
    share = gaps.n / gaps.n.sum()
    shades = ScalarMappable(_colours(gaps, share), _shades())
    tiles = [
        Rectangle((column - side / 2, row - side / 2), side, side)
        for row, column in np.argwhere(gaps.n > 0)
        for side in [0.96 if gaps.beyond_chance[row, column] else _WITHIN_CHANCE]
    ]
    colours = shades.to_rgba(gaps.gap[gaps.n > 0])
    axes.add_collection(PatchCollection(tiles, facecolors=colours, edgecolors="none"))
    for row, column in np.argwhere(gaps.n > 0):
        _write(axes, gaps, share, int(row), int(column))
    floor = f"by chance if calibrated: {gaps.floor:.4f}"
    number = style.counted(float(gaps.n.sum()), "review")
    lines = (f"rmse_bins {gaps.rmse:.4f} ({floor}); n = {number}", _READING)
    axes.text(
        0,
        1.015,
        "\n".join(lines),
        transform=axes.transAxes,
        va="bottom",
        fontsize=style.SMALL - 0.5,
        linespacing=1.35,
    )
    return shades


_READING = (
    "in each tile: prediction less recall in %, share of reviews\nsmall tiles: within chance (95 %)"
)


def _places(scale: Scale, code: IntArray) -> tuple[IntArray, tuple[str, ...]]:
    """Count the codes that occur from 0, with those between them, and name their ranges."""
    whole = np.arange(1, _LARGEST)
    codes = scale.codes(whole)
    first = np.flatnonzero(np.diff(codes, prepend=-1))
    starts, known = whole[first], codes[first]
    # Values below 1 share the first position, values beyond the last share the last.
    place = np.searchsorted(known, code, side="right")
    lowest = int(place.min())
    ranges = zip(starts, starts[1:] - 1, strict=False)
    names = ["< 1", *(f"{low}-{high}" if low < high else f"{low}" for low, high in ranges)]
    names.append(f"{starts[-1]}+")
    return place - lowest, tuple(names[lowest : int(place.max()) + 1])


def _colours(gaps: BinGaps, share: FloatArray) -> Normalize:
    """Choose the largest gap of the colour scale: a round number, symmetric about 0."""
    notable = np.abs(gaps.gap[share >= min(_NOTABLE, float(share.max()))])
    most = next((limit for limit in _LIMITS if limit >= float(notable.max()) - 1e-9), 1.0)
    return Normalize(-most, most, clip=True)


def _shades() -> Colormap:
    """Blue to white to vermilion: apart under every common colour vision deficiency.

    Light enough throughout for dark letters.
    """
    low, high = (
        to_hex(style.tints(colour, np.array([0.72]))[0]) for colour in (style.BLUE, style.VERMILION)
    )
    return LinearSegmentedColormap.from_list("gaps", [low, "#F7F7F7", high], N=255)


def _write(axes: Axes, gaps: BinGaps, share: FloatArray, row: int, column: int) -> None:
    """Write the gap of a bin and its share of the reviews into its tile."""
    beyond = bool(gaps.beyond_chance[row, column])
    part = 100 * float(share[row, column])
    lines = {
        0.14: f"{100 * float(gaps.gap[row, column]):+.1f}".replace("-0.0", "0.0"),
        -0.2: f"{part:.0f} %" if part >= 9.95 else f"{part:.1f} %" if part >= 0.05 else "<0.1 %",
    }
    for (above, words), size in zip(lines.items(), (style.SMALL, style.SMALL - 2), strict=True):
        axes.text(
            column,
            row + above,
            words,
            ha="center",
            va="center",
            fontsize=size,
            color=style.INK,
            fontweight="bold" if beyond and above > 0 else "normal",
        )


def _add_key(figure: Figure, axes: Axes, shades: ScalarMappable) -> None:
    bar = style.colour_bar(figure, axes, shades, "prediction less recall", extend="both")
    bar.ax.yaxis.set_major_formatter(
        FuncFormatter(lambda gap, _: f"{100 * gap:+g} %" if gap else "0")
    )
