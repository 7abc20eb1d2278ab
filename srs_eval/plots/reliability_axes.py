"""Axes of the calibration diagram: range, diagonal, key, and a strip of outcomes above."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes

from srs_eval.metrics.tally import Tally
from srs_eval.nouns import FloatArray
from srs_eval.plots import style

# Models with at most as many distinct predictions have a dot for each.
FEW_LEVELS = 20
_BINS = 80
_BESIDE = 0.02
# Width of a letter of one point.
_LETTER = 0.0018
_HEIGHT = 0.2


def begin(axes: Axes, reviews: Tally) -> bool:
    """Prepare axes, and return whether there is anything to draw."""
    axes.set(xlabel="predicted recall", ylabel="observed recall", aspect="equal")
    style.style_axes(axes)
    if not len(reviews):
        style.write_message(axes, "no predictions")
    return len(reviews) > 0


def frame(axes: Axes, limits: tuple[float, float]) -> None:
    """Set the range of both axes, and draw the diagonal on which a model would be calibrated."""
    # A little room, so that a curve along the edge keeps its full thickness.
    pad = 0.012 * (limits[1] - limits[0])
    padded = (limits[0] - pad, limits[1] + pad)
    axes.set(xlim=padded, ylim=padded)
    axes.plot([0, 1], [0, 1], color=style.MUTED, lw=1, ls=(0, (4, 3)), zorder=1.5, label="perfect")


def window_of(reviews: Tally, at: FloatArray, heights: FloatArray) -> tuple[float, float]:
    """Choose one range for both axes: round numbers, at least 0.3 wide.

    It holds 99.8 % of the predictions, and the points drawn at `at` among them.
    """
    reached = np.cumsum(reviews.count)
    place = np.searchsorted(reached, np.array([0.001, 0.999]) * reached[-1])
    low, high = reviews.p[np.minimum(place, len(reviews) - 1)]
    among = heights[(at >= low) & (at <= high)]
    if len(among):
        low, high = min(low, among.min()), max(high, among.max())
    low, high = math.floor(10 * low + 1e-6) / 10, math.ceil(10 * high - 1e-6) / 10
    low, high = (0.0 if low < 0.25 else low), (1.0 if high > 0.75 else high)
    while high - low < 0.3 - 1e-9:
        low, high = (round(low - 0.1, 1), high) if low > 1 - high else (low, round(high + 0.1, 1))
    return float(low), float(high)


def finish(
    axes: Axes,
    reviews: Tally,
    lines: Sequence[str],
    drawn: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    *,
    outcomes: bool,
) -> None:
    """Write the key, with some lines above it, into a free corner; add the strip of outcomes.

    `drawn` are predictions, and the curve, the lowest and the highest thing drawn at each.
    """
    lines = [*lines, *_range_texts(axes, reviews)]
    labels = axes.get_legend_handles_labels()[1]
    legend = axes.legend(
        loc=_free_corner(axes, _key_size(lines, labels), *drawn),
        title="\n".join(lines),
        title_fontsize=style.NORMAL,
        fontsize=style.SMALL,
        handlelength=1.6,
    )
    legend.set_alignment("left")
    legend.set(frame_on=True, zorder=5)
    legend.get_frame().set(facecolor="white", edgecolor="none", alpha=0.8)
    if outcomes:
        _draw_outcome_strip(axes, reviews)


def _range_texts(axes: Axes, reviews: Tally) -> list[str]:
    """Count the reviews, and those whose predictions are beyond the axes."""
    low, high = axes.get_xlim()
    count = reviews.count
    below, above = float(count[reviews.p < low].sum()), float(count[reviews.p > high].sum())
    lines = [f"n = {style.counted(reviews.n, 'review')}"]
    lines += [f"{round(below):,} predicted below {low:.2f} not shown"] if below else []
    lines += [f"{round(above):,} predicted above {high:.2f} not shown"] if above else []
    return lines


def _key_size(lines: Sequence[str], labels: Sequence[str]) -> tuple[float, float]:
    """Estimate the width and height of the key, as shares of those of a square figure's axes."""
    above, below = (max(map(len, each), default=0) for each in (lines, labels))
    width = max(0.02 + _LETTER * style.NORMAL * above, 0.09 + _LETTER * style.SMALL * below)
    return width, 0.04 + 0.004 * style.NORMAL * len(lines) + 0.0052 * style.SMALL * len(labels)


def _free_corner(
    axes: Axes,
    key: tuple[float, float],
    p: FloatArray,
    curve: FloatArray,
    bottom: FloatArray,
    top: FloatArray,
) -> Literal["upper left", "lower right"]:
    """Choose the corner where a key of that size covers less of the curve, and then of its band."""
    low, span = axes.get_xlim()[0], float(np.ptp(axes.get_xlim()))
    across, line, deep, high = ((values - low) / span for values in (p, curve, bottom, top))
    left, right = (across >= 0) & (across < key[0]), across > 1 - key[0]
    ceiling, floor = 1 - key[1], key[1]
    above = ((left & (line > ceiling)).sum(), (left & (high > ceiling)).sum())
    below = ((right & (line < floor)).sum(), (right & (deep < floor)).sum())
    return "upper left" if above <= below else "lower right"


def _draw_outcome_strip(axes: Axes, reviews: Tally) -> None:
    """Add a strip with the density of predictions: recalled reviews up, forgotten ones down.

    Each outcome fills the same area, because forgetting is rare; the counts are written above. The
    limits of the horizontal axis, predicted recall, must be set.
    """
    strip = axes.inset_axes((0, 1 + _BESIDE, 1, _HEIGHT), sharex=axes)
    strip.set_facecolor("none")
    strip.axis("off")
    edges = np.linspace(*axes.get_xlim(), _BINS + 1)
    up, down = (_shares(reviews.p, count, edges) for count in (reviews.recalled, reviews.forgotten))
    peak = max(up.max(), down.max()) or 1.0
    strip.stairs(up, edges, fill=True, color=style.GREEN, lw=0)
    strip.stairs(-down, edges, fill=True, color=style.VERMILION, lw=0)
    strip.axhline(0, color=style.MUTED, lw=0.6)
    strip.set_ylim(-1.05 * peak, 1.9 * peak)
    # The words are darker than the areas, to be as legible.
    shared: dict[str, Any] = {"transform": strip.transAxes, "fontsize": style.SMALL}
    words = (
        (0.0, f"▲ recalled {round(reviews.n_recalled):,}", "#00614A"),
        (0.36, f"▼ forgotten {round(reviews.n_forgotten):,}", "#A34700"),
    )
    for at, word, colour in words:
        strip.text(at, 1, word, va="top", color=colour, **shared)


def _shares(p: FloatArray, count: FloatArray, edges: FloatArray) -> FloatArray:
    """Share of the reviews in each bin, of those in any."""
    # Sorted predictions need no search for their bins: the bins are looked up in them.
    place = np.searchsorted(p, edges, side="left")
    place[-1] = np.searchsorted(p, edges[-1], side="right")
    held = np.diff(np.append(0.0, np.cumsum(count))[place])
    shares: FloatArray = held / max(1.0, float(held.sum()))
    return shares
