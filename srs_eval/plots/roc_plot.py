"""Discrimination: the ROC curve, with the operating points of recall thresholds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from numpy.typing import ArrayLike

from srs_eval.metrics.predictions import Predictions
from srs_eval.metrics.tally import Tally
from srs_eval.metrics.threshold import RocCurve, roc_of
from srs_eval.plots import style

_THRESHOLDS = (0.7, 0.8, 0.9, 0.95)
# Points closer than this share a label.
_CLOSE = 0.06
_POINTS = 1001


def plot_roc(
    axes: Axes,
    p: ArrayLike | Predictions | Tally,
    recalled: ArrayLike | None = None,
    *,
    thresholds: Sequence[float] = _THRESHOLDS,
    label: str = "",
    colour: str = style.BLUE,
) -> RocCurve:
    """Draw the ROC curve and mark where "recalled if p >= R*" lies on it.

    Parameters
    ----------
    axes : Axes
        Where to draw; no other matplotlib state is touched.
    p, recalled : float [n], in [0, 1], and bool [n]
        Predicted recall, and outcome; or predictions of a run alone. Recalled is the positive
        class.
    thresholds : sequence of float
        The R* to mark.
    label, colour : str
        Name in the legend, and any matplotlib colour.

    Returns
    -------
    RocCurve
        What was drawn. Its AUC is NaN, and the axes say so, where only one outcome occurred.

    Raises
    ------
    ScoreError
        If `p` and `recalled` cannot be scored.
    """
    reviews = style.tally_of(p, recalled)
    curve = roc_of(reviews, thresholds=thresholds, points=_POINTS)
    axes.set(
        xlabel="false positive rate (forgotten, predicted ≥ R*)",
        ylabel="true positive rate (recalled, predicted ≥ R*)",
        xlim=(-0.01, 1.01),
        ylim=(-0.01, 1.01),
        aspect="equal",
    )
    style.style_axes(axes)
    style.draw_diagonal(axes, "chance")
    number = style.counted(reviews.n, "review")
    if math.isfinite(curve.auc):
        axes.plot(curve.fpr, curve.tpr, color=colour, lw=2.2, zorder=3, label=label or "model")
        _mark(axes, curve, colour)
        style.write_key(axes, [f"AUC {curve.auc:.3f}", f"n = {number}"], "lower right")
    else:
        absent = "forgotten" if reviews.n_recalled else "recalled"
        why = f"no review was {absent}" if len(reviews) else "no predictions"
        style.write_message(axes, f"AUC is not defined:\n{why}\n(n = {number})")
    return curve


def roc_figure(reviews: Predictions | Tally, *, title: str = "") -> Figure:
    """Draw the ROC curve of all predictions together; `title` says whose they are."""
    return style.square_figure("discrimination (ROC)", title, lambda axes: plot_roc(axes, reviews))


def _mark(axes: Axes, curve: RocCurve, colour: str) -> None:
    """Mark the operating points, with one label for those that lie close together."""
    points = sorted(curve.at)
    x, y = [fpr for _, fpr, _ in points], [tpr for _, _, tpr in points]
    dots: dict[str, Any] = {"color": colour, "ms": 6.5, "mec": "white", "mew": 1, "zorder": 4}
    dots |= {"clip_on": False, "gid": "operating points", "label": "recalled if p ≥ R*"}
    axes.plot(x, y, "o", **dots)
    groups: list[list[tuple[float, float, float]]] = []
    for point in points:
        if groups and math.dist(groups[-1][-1][1:], point[1:]) < _CLOSE:
            groups[-1].append(point)
        else:
            groups.append([point])
    look: dict[str, Any] = {"fontsize": style.SMALL, "color": style.INK, "va": "top", "zorder": 5}
    look["path_effects"] = [withStroke(linewidth=2.5, foreground="white")]
    for group in groups:
        place = group[len(group) // 2][1:]
        names = ", ".join(f"{threshold:g}" for threshold, _, _ in group)
        names = f"R* = {names}" if group is groups[-1] else names
        # Concave curves leave room below and to the right of them.
        align, offset = ("right", (6, -12)) if place[0] > 0.9 else ("left", (8, -4))
        offset = (18, 10) if place[1] < 0.06 else offset
        axes.annotate(names, place, offset, textcoords="offset points", ha=align, **look)
