"""A strip above a plot that shows which predictions were followed by which outcome."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from srs_eval.metrics.tally import Tally
from srs_eval.nouns import FloatArray
from srs_eval.plots.style import GREEN, MUTED, SMALL, VERMILION

_BINS = 80
_BESIDE = 0.02
_HEIGHT = 0.2


def draw_outcome_strip(axes: Axes, reviews: Tally) -> Axes:
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
    strip.stairs(up, edges, fill=True, color=GREEN, lw=0)
    strip.stairs(-down, edges, fill=True, color=VERMILION, lw=0)
    strip.axhline(0, color=MUTED, lw=0.6)
    strip.set_ylim(-1.05 * peak, 1.9 * peak)
    # The words are darker than the areas, to be as legible.
    words = (
        (0.0, f"▲ recalled {round(reviews.n_recalled):,}", "#00614A"),
        (0.36, f"▼ forgotten {round(reviews.n_forgotten):,}", "#A34700"),
    )
    for at, word, colour in words:
        strip.text(at, 1, word, transform=strip.transAxes, va="top", color=colour, fontsize=SMALL)
    return strip


def _shares(p: FloatArray, count: FloatArray, edges: FloatArray) -> FloatArray:
    """Share of the reviews in each bin, of those in any."""
    # Sorted predictions need no search for their bins: the bins are looked up in them.
    place = np.searchsorted(p, edges, side="left")
    place[-1] = np.searchsorted(p, edges[-1], side="right")
    held = np.diff(np.append(0.0, np.cumsum(count))[place])
    shares: FloatArray = held / max(1.0, float(held.sum()))
    return shares
