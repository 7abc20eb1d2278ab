"""Discrimination: the ROC curve, with the operating points of recall thresholds."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from numpy.typing import ArrayLike

from srs_eval.metrics.predictions import Predictions
from srs_eval.metrics.roc import RocCurve, roc_of
from srs_eval.metrics.tally import Tally
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
    if lines := _draw(axes, reviews, curve, label, colour):
        style.write_key(axes, lines, "lower right")
    return curve


def roc_figure(reviews: Predictions | Tally, *, title: str = "") -> Figure:
    """Draw the ROC curve of all predictions together; `title` says whose they are."""
    counts = style.tally_of(reviews)
    curve = roc_of(counts, thresholds=_THRESHOLDS, points=_POINTS)
    return style.square_figure(
        "discrimination (ROC)", title, lambda axes: _draw(axes, counts, curve, "", style.BLUE)
    )


def _draw(axes: Axes, reviews: Tally, curve: RocCurve, label: str, colour: str) -> list[str]:
    """Draw the curve, its operating points and the diagonal; return lines for the key."""
    axes.set(
        xlabel="false positive rate (forgotten, predicted ≥ R*)",
        ylabel="true positive rate (recalled, predicted ≥ R*)",
        xlim=(-0.01, 1.01),
        ylim=(-0.01, 1.01),
        aspect="equal",
    )
    style.style_axes(axes)
    number = style.counted(reviews.n, "review")
    style.draw_diagonal(axes, 0, 1, "chance")
    if not math.isfinite(curve.auc):
        missing = "forgotten" if reviews.n_recalled else "recalled"
        why = f"no review was {missing}" if len(reviews) else "no predictions"
        style.write_message(axes, f"AUC is not defined:\n{why}\n(n = {number})")
        return []
    axes.plot(curve.fpr, curve.tpr, color=colour, lw=2.2, zorder=3, label=label or "all thresholds")
    _mark(axes, curve, colour)
    return [f"AUC {curve.auc:.3f}", f"n = {number}"]


def _mark(axes: Axes, curve: RocCurve, colour: str) -> None:
    """Mark the operating points, with one label for those that lie close together."""
    axes.plot(
        [fpr for _, fpr, _ in curve.at],
        [tpr for _, _, tpr in curve.at],
        "o",
        ms=6.5,
        color=colour,
        mec="white",
        mew=1,
        zorder=4,
        clip_on=False,
        gid="operating points",
        label="recalled if p ≥ R*",
    )
    groups: list[list[tuple[float, float, float]]] = []
    for point in sorted(curve.at):
        if groups and math.dist(groups[-1][-1][1:], point[1:]) < _CLOSE:
            groups[-1].append(point)
        else:
            groups.append([point])
    for group in groups:
        _, x, y = group[len(group) // 2]
        names = ", ".join(f"{threshold:g}" for threshold, _, _ in group)
        # Concave curves leave room below and to the right of them.
        align, offset = ("right", (6, -12)) if x > 0.9 else ("left", (8, -4))
        axes.annotate(
            f"R* = {names}" if group is groups[-1] else names,
            (x, y),
            xytext=(18, 10) if y < 0.06 else offset,
            textcoords="offset points",
            ha=align,
            va="top",
            fontsize=style.SMALL,
            color=style.INK,
            path_effects=[withStroke(linewidth=2.5, foreground="white")],
            zorder=5,
        )
