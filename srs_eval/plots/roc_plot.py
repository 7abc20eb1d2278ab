"""Discrimination: the ROC curve, with the operating points of recall thresholds."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from numpy.typing import ArrayLike

from srs_eval.metrics.roc import RocCurve, roc_of
from srs_eval.metrics.tally import Tally
from srs_eval.nouns import Predictions
from srs_eval.plots import style

_THRESHOLDS = (0.7, 0.8, 0.9, 0.95)
_NEAR = 0.06
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
        Name in the legend, which is absent without it, and any matplotlib colour.

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
    _prepare(axes)
    number = style.counted(reviews.n, "review")
    if not math.isfinite(curve.auc):
        missing = "forgotten" if reviews.n_recalled else "recalled"
        why = f"no review was {missing}" if len(reviews) else "no predictions"
        style.write_message(axes, f"AUC is not defined:\n{why}\n(n = {number})")
        return curve
    axes.plot(curve.fpr, curve.tpr, color=colour, lw=2.2, zorder=3, label=label or None)
    _mark(axes, curve, colour)
    axes.text(
        0.97,
        0.04,
        f"AUC {curve.auc:.3f}\nn = {number}",
        transform=axes.transAxes,
        ha="right",
        va="bottom",
    )
    if label:
        axes.legend(loc="center right")
    return curve


def roc_figure(reviews: Predictions | Tally, *, title: str = "") -> Figure:
    """Draw the ROC curve of all predictions together; `title` says whose they are."""
    return style.square_figure(
        "discrimination (ROC)", title, 0, lambda axes: plot_roc(axes, reviews)
    )


def _prepare(axes: Axes) -> None:
    axes.set(
        xlabel="false positive rate (forgotten, predicted ≥ R*)",
        ylabel="true positive rate (recalled, predicted ≥ R*)",
        xlim=(-0.01, 1.01),
        ylim=(-0.01, 1.01),
    )
    axes.set_aspect("equal")
    style.style_axes(axes)
    axes.plot([0, 1], [0, 1], color=style.MUTED, lw=1, ls=(0, (4, 3)), zorder=1.5)


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
    )
    groups: list[list[tuple[float, float, float]]] = []
    for point in sorted(curve.at):
        near = groups and math.dist(groups[-1][-1][1:], point[1:]) < _NEAR
        groups = [*groups[:-1], [*groups[-1], point]] if near else [*groups, [point]]
    for group in groups:
        _, fpr, tpr = group[len(group) // 2]
        names = ", ".join(f"{threshold:g}" for threshold, _, _ in group)
        # Concave curves leave room below and to the right of them.
        align, offset = ("right", (6, -12)) if fpr > 0.9 else ("left", (8, -4))
        if tpr < 0.06:
            offset = (18, 10)
        axes.annotate(
            f"R* = {names}" if group is groups[-1] else names,
            (fpr, tpr),
            xytext=offset,
            textcoords="offset points",
            ha=align,
            va="top",
            fontsize=style.SMALL,
            color=style.INK,
            path_effects=[withStroke(linewidth=2.5, foreground="white")],
            zorder=5,
        )
