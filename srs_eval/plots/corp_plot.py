"""The CORP reliability diagram: the rising curve that fits the outcomes best.

References
----------
Dimitriadis, Gneiting and Jordan (2021), doi:10.1073/pnas.2016191118.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from srs_eval.metrics.corp import ConsistencyBand, Corp, CorpParts, corp, corp_consistency_band
from srs_eval.metrics.tally import Tally
from srs_eval.nouns import FloatArray, Predictions
from srs_eval.plots import style
from srs_eval.plots.reliability_axes import FEW_LEVELS, begin, finish, frame, window_of

# Corners of the curve closer than this are one.
_FINEST = 1 / 1000


def plot_corp(
    axes: Axes,
    p: ArrayLike | Predictions | Tally,
    recalled: ArrayLike | None = None,
    *,
    label: str = "",
    colour: str = style.BLUE,
    outcomes: bool = True,
    limits: tuple[float, float] | None = None,
) -> Corp | None:
    """Draw a CORP reliability diagram.

    The curve is the isotonic regression of outcomes on predictions: it needs no bins and no
    bandwidth, and may not fall. The pale band is where 19 of 20 such curves would be at each
    place if predictions were calibrated. Written beside it is what the Brier score and the log
    loss are made of: miscalibration (MCB) - discrimination (DSC) + uncertainty (UNC). Parameters
    and errors are those of `plot_calibration`.

    Returns
    -------
    Corp or None
        What was drawn; None if there are no predictions.
    """
    reviews = style.tally_of(p, recalled)
    if not begin(axes, reviews, "recalibrated recall"):
        return None
    found, band = corp(reviews), corp_consistency_band(reviews)
    few = len(reviews) <= FEW_LEVELS
    corners = np.stack([found.p, found.recalibrated], axis=1) if few else _corners(found)
    frame(axes, limits or window_of(reviews, *corners.T))
    if few:
        axes.vlines(band.p, band.lo, band.hi, color=style.CHANCE, lw=7, label="95 % if calibrated")
        axes.plot(*corners.T, "o-", color=colour, lw=1, ms=6, mec="white", clip_on=False)
        axes.plot([], [], "o-", color=colour, lw=1, ms=6, label=label or "isotonic regression")
    else:
        axes.fill_between(
            band.p, band.lo, band.hi, color=style.CHANCE, lw=0, label="95 % if calibrated"
        )
        axes.plot(*corners.T, color=colour, lw=2, label=label or "isotonic regression", zorder=3)
    lines = [_parts_text("Brier", found.brier), _parts_text("log", found.log)]
    drawn = _envelope(corners, band)
    finish(axes, reviews, lines, drawn, outcomes=outcomes, size=style.SMALL + 0.5)
    return found


def corp_figure(reviews: Predictions | Tally, *, title: str = "") -> Figure:
    """Draw the CORP diagram of all predictions together; `title` says whose they are."""
    return style.square_figure(
        "calibration (CORP)", title, style.STRIP, lambda axes: plot_corp(axes, reviews)
    )


def _parts_text(score: str, parts: CorpParts) -> str:
    """Write what a score is made of.

    >>> _parts_text("Brier", CorpParts(0.1, 0.02, 0.03, 0.11))
    'Brier: MCB 0.0200, DSC 0.0300, UNC 0.1100'
    """
    named = {
        "MCB": parts.miscalibration,
        "DSC": parts.discrimination,
        "UNC": parts.uncertainty,
    }
    # At least two significant digits.
    digits = {name: 4 if part >= 0.001 or part < 5e-7 else 6 for name, part in named.items()}
    known = ", ".join(f"{name} {part:.{digits[name]}f}" for name, part in named.items())
    return f"{score}: {known}"


def _corners(found: Corp) -> FloatArray:
    """Points [m, 2] at which the curve bends, without those that would overlap."""
    ends = np.stack([found.start[:-1], found.start[1:] - 1], axis=1)
    points = np.stack([found.p[ends], np.repeat(found.share[:, None], 2, axis=1)], axis=-1)
    points = points.reshape(-1, 2)
    moved = np.diff(np.rint(points / _FINEST), axis=0, prepend=-1).any(axis=1)
    moved[-1] = True
    bends: FloatArray = points[moved]
    return bends


def _envelope(
    corners: FloatArray, band: ConsistencyBand
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Evenly spaced predictions, and the curve, the lowest and the highest thing at each."""
    grid = np.linspace(corners[0, 0], corners[-1, 0], 200)
    heights = [
        np.interp(grid, *corners.T),
        *(np.interp(grid, band.p, y) for y in (band.lo, band.hi)),
    ]
    return grid, heights[0], np.min(heights, axis=0), np.max(heights, axis=0)
