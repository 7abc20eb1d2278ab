"""Where predictions are too high or too low: the bins of RMSE(bins) as a heat map."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PatchCollection
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter
from numpy.typing import ArrayLike

from srs_eval.data.reviews import BoolArray, FloatArray, IntArray
from srs_eval.metrics.bins import FSRS_OPTIMIZER, Scale, mean_square, mean_variance
from srs_eval.metrics.predictions import Predictions, predictions_of
from srs_eval.plots import style

# Whole numbers up to this have their bins named: 100 years in days.
_LARGEST = 36_600
_Z = 1.959963984540054
# Blue to vermilion, light enough for letters.
_SHADES = LinearSegmentedColormap.from_list("gaps", ["#479ACA", "#F7F7F7", "#E18C47"], N=255)
_LIMITS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
# Bins of a smaller share of the reviews do not stretch the colours.
_NOTABLE = 0.005
_WITHIN_CHANCE = 0.62
# Names of columns that have more letters than this in all are turned.
_LETTERS = 60


class BinGaps(NamedTuple):
    """Mean prediction less observed recall in bins of interval and number of reviews."""

    intervals: tuple[str, ...]  # [columns]: Ranges of elapsed days
    reviews: tuple[str, ...]  # [rows]: Ranges of numbers of reviews
    n: FloatArray  # [rows, columns]: Reviews in each bin
    gap: FloatArray  # [rows, columns]: Prediction less recall; NaN where there are no reviews
    beyond_chance: BoolArray  # [rows, columns]: Too large for 95 % of calibrated predictions
    rmse: float  # RMSE(bins), over bins of lapses too
    floor: float  # What chance alone would leave of it


def plot_bins(
    axes: Axes,
    p: ArrayLike,
    recalled: ArrayLike,
    elapsed_days: ArrayLike,
    nth_review: ArrayLike,
    lapses: ArrayLike,
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
    return _draw(axes, bin_gaps(reviews))


def bins_figure(reviews: Predictions | FloatArray, *, title: str = "") -> Figure:
    """Draw the bins of RMSE(bins) of predictions, or of sums of every bin: see `plot_bins`."""
    gaps = bin_gaps(reviews)
    with style.titled_figure("bins", title) as figure:
        axes = figure.add_subplot()
        if (shades := _draw(axes, gaps)) is not None:
            percent = FuncFormatter(lambda gap, _: f"{100 * gap:+g} %" if gap else "0")
            look: dict[str, Any] = {"extend": "both", "format": percent}
            style.add_colour_bar(figure, axes, shades, "prediction less recall", **look)
    return figure


def bin_gaps(reviews: Predictions | FloatArray) -> BinGaps:
    """Add up the bins of RMSE(bins) that differ in lapses only; empty where facts are missing."""
    bins = FSRS_OPTIMIZER
    sums = bins.sums(reviews, every=True) if isinstance(reviews, Predictions) else reviews
    columns, intervals = _ranges(bins.interval)
    rows, numbers = _ranges(bins.reviews)
    table = sums.reshape(*bins.shape, 3).sum(axis=2)
    table = np.add.reduceat(np.add.reduceat(table, columns, axis=0), rows, axis=1)
    n, gap, variance = table.transpose(2, 1, 0)
    across, up = (np.flatnonzero((n > 0).any(axis=axis)) for axis in (0, 1))  # NaN is not
    if not len(up):
        none = np.empty((0, 0))
        return BinGaps((), (), none, none, none > 0, math.nan, math.nan)
    row, column = slice(up[0], up[-1] + 1), slice(across[0], across[-1] + 1)
    n, gap, variance = (each[row, column] for each in (n, gap, variance))
    sums = sums[sums[:, 0] > 0]
    return BinGaps(
        intervals=intervals[column],
        reviews=numbers[row],
        n=n,
        gap=np.divide(gap, n, out=np.full(n.shape, np.nan), where=n > 0),
        # Outcomes are whole: half a review more or less is the nearest they come.
        beyond_chance=np.abs(gap) > _Z * np.sqrt(variance) + 0.5,
        rmse=math.sqrt(mean_square(sums)),
        floor=math.sqrt(mean_variance(sums)),
    )


def _ranges(scale: Scale) -> tuple[IntArray, tuple[str, ...]]:
    """First codes, and names, of the ranges of whole numbers that share a code, from < 1 on."""
    whole = np.arange(1, _LARGEST)
    codes = scale.codes(whole)
    first = np.flatnonzero(np.diff(codes, prepend=-1))
    ranges = zip(whole[first], whole[first[1:]] - 1, strict=False)
    names = [f"{low}-{high}" if low < high else f"{low}" for low, high in ranges]
    return np.append(0, codes[first]), ("< 1", *names, f"{whole[first[-1]]}+")


def _draw(axes: Axes, gaps: BinGaps) -> ScalarMappable | None:
    """Draw the tiles of bins: see `plot_bins`."""
    style.style_axes(axes)
    axes.set(xlabel="elapsed days", ylabel="number of the review")
    if not gaps.n.size:
        axes.set(xticks=[], yticks=[])
        style.write_message(axes, "no reviews whose days, number\nand lapses are known")
        return None
    rows, columns = gaps.n.shape
    axes.set(xlim=(-0.5, columns - 0.5), ylim=(-0.5, rows - 0.5))
    askew = columns * max(map(len, gaps.intervals)) > _LETTERS
    slant: dict[str, Any] = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks(range(columns), gaps.intervals, **(slant if askew else {}))
    axes.set_yticks(range(rows), gaps.reviews)
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(length=0)
    share = gaps.n / gaps.n.sum()
    shades = ScalarMappable(_norm(gaps.gap, share), _SHADES)
    tiles = []
    for row, column in np.argwhere(gaps.n > 0):
        beyond = bool(gaps.beyond_chance[row, column])
        side = 0.96 if beyond else _WITHIN_CHANCE
        tiles.append(Rectangle((column - side / 2, row - side / 2), side, side))
        gap, part = 100 * float(gaps.gap[row, column]), 100 * float(share[row, column])
        words = f"{gap:+.1f}".replace("-0.0", "0.0")
        percent = f"{part:.0f} %" if part >= 9.95 else f"{part:.1f} %" if part >= 0.05 else "<0.1 %"
        shared: dict[str, Any] = {"ha": "center", "va": "center", "in_layout": False}
        weight = "bold" if beyond else "normal"
        axes.text(column, row + 0.14, words, fontsize=style.SMALL, fontweight=weight, **shared)
        axes.text(column, row - 0.2, percent, fontsize=style.SMALL - 2, **shared)
    colours = shades.to_rgba(gaps.gap[gaps.n > 0])
    axes.add_collection(PatchCollection(tiles, facecolors=colours, edgecolors="none"))
    lines = (
        f"rmse_bins {gaps.rmse:.4f} (by chance if calibrated: {gaps.floor:.4f}); "
        f"n = {style.counted(float(gaps.n.sum()), 'review')}",
        "tiles: prediction less recall in %, share of reviews; small tiles: within chance (95 %)",
    )
    style.write_above(axes, lines)
    return shades


def _norm(gap: FloatArray, share: FloatArray) -> Normalize:
    """Choose the largest gap of the colour scale: a round number, symmetric about 0."""
    largest = float(np.abs(gap[share >= min(_NOTABLE, float(share.max()))]).max())
    limit = next(limit for limit in _LIMITS if limit >= min(1.0, largest) - 1e-9)
    return Normalize(-limit, limit, clip=True)
