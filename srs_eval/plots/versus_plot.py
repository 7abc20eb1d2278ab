"""Scores of two models against each other, one dot for each user."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from srs_eval.data.reviews import FloatArray
from srs_eval.errors import ScoreError
from srs_eval.metrics.means import Estimate, paired_mean, paired_signs
from srs_eval.metrics.metric import Better
from srs_eval.metrics.significance import SignTest
from srs_eval.plots import style

# Dots of more users would hide each other, and make large files.
_DOTS = 1000
_HEXAGONS = 45
_SHADES = LinearSegmentedColormap.from_list("users", ["#CFE3F1", style.BLUE, "#00263D"], N=64)


class Difference(NamedTuple):
    """Difference between two models over the same users."""

    difference: Estimate  # Mean of the first model's scores less the second's
    users: SignTest  # Users for whom the first model is better, worse, and equal


def plot_versus(
    axes: Axes,
    scores_a: ArrayLike,
    scores_b: ArrayLike,
    *,
    names: tuple[str, str] = ("A", "B"),
    metric: str = "score",
    better: Better = "neither",
) -> Difference | None:
    """Draw the scores of two models against each other, one dot for each user.

    The text above shows the mean difference with its 99 % interval over users, and for how many
    users the first model is better. More than 1,000 users are drawn as hexagons, darker where
    there are more. The axes span the central 99 % of each model's scores if there are 200 users
    or more; users outside are counted.

    Parameters
    ----------
    axes : Axes
        Where to draw; no other matplotlib state is touched.
    scores_a, scores_b : float [users]
        Scores of the same users in the same order; NaN where not defined.
    names : (str, str)
        Names of the models.
    metric : str
        Name of the metric.
    better : str
        Which way is better: ``lower``, ``higher``, nearest to ``zero``, or ``neither``.

    Returns
    -------
    Difference or None
        The numbers above the dots; None if no user has both scores.

    Raises
    ------
    ScoreError
        If the numbers of scores differ.
    """
    first, second = np.asarray(scores_a, np.float64), np.asarray(scores_b, np.float64)
    if first.shape != second.shape or first.ndim != 1:
        shapes = f"{first.shape} and {second.shape}"
        raise ScoreError(f"scores of two models must be of the same users, found {shapes}")
    defined = np.isfinite(first) & np.isfinite(second)
    first, second = first[defined], second[defined]
    names = (style.short_name(names[0]), style.short_name(names[1]))
    style.style_axes(axes)
    axes.set(xlabel=f"{metric} of {names[0]}", ylabel=f"{metric} of {names[1]}", aspect="equal")
    if not len(first):
        style.write_message(axes, "no user has both scores")
        return None
    outside = _draw_users(axes, first, second)
    sign = -1.0 if better == "higher" else 1.0
    first, second = (np.abs(first), np.abs(second)) if better == "zero" else (first, second)
    difference = Difference(paired_mean(first, second), paired_signs(sign * first, sign * second))
    style.write_above(axes, _lines(difference, names[0], better, outside))
    if better in ("lower", "higher"):
        above, below = names if better == "lower" else names[::-1]
        corner: dict[str, Any] = {"transform": axes.transAxes, "fontsize": style.SMALL, "zorder": 1}
        axes.text(0.03, 0.97, f"{above} better", va="top", color=style.MUTED, **corner)
        axes.text(0.97, 0.03, f"{below} better", ha="right", color=style.MUTED, **corner)
    return difference


def versus_figure(
    scores_a: FloatArray,
    scores_b: FloatArray,
    *,
    names: tuple[str, str] = ("A", "B"),
    metric: str = "score",
    better: Better = "neither",
) -> Figure:
    """Draw two models against each other, user by user."""
    with style.titled_figure("users", f"{names[0]} and {names[1]}", 5, 5.6) as figure:
        axes = figure.add_subplot()
        plot_versus(axes, scores_a, scores_b, names=names, metric=metric, better=better)
    return figure


def _draw_users(axes: Axes, first: FloatArray, second: FloatArray) -> int:
    """Draw dots or hexagons and the diagonal; return the number of users outside the axes."""
    low, high = style.padded([style.central(first), style.central(second)], 0.06)
    inside = (np.minimum(first, second) >= low) & (np.maximum(first, second) <= high)
    style.draw_diagonal(axes, zorder=3)
    x, y = first[inside], second[inside]
    if len(first) > _DOTS:
        look: dict[str, Any] = {"norm": LogNorm(1), "cmap": _SHADES, "linewidths": 0.2, "zorder": 2}
        look |= {"gridsize": _HEXAGONS, "extent": (low, high, low, high)}
        axes.hexbin(x, y, mincnt=1, **look)
    else:
        size, alpha = (5, 0.9) if len(first) <= 100 else (3, 0.6)
        axes.plot(x, y, "o", ms=size, alpha=alpha, color=style.BLUE, mec="white", mew=0.5)
    axes.set(xlim=(low, high), ylim=(low, high))
    return int((~inside).sum())


def _lines(of: Difference, name: str, better: Better, outside: int) -> list[str]:
    """Write the mean difference with its interval, and for how many users a model is better."""
    lo, hi = of.difference.interval()
    digits = style.digits_of(hi - lo, 4)
    interval = f" [{lo:z.{digits}f}, {hi:z.{digits}f}]" if hi > lo else ""
    lines = [f"mean difference {of.difference.mean:+.{digits}f}{interval}"]
    users = sum(of.users)
    if better != "neither":
        alike = f", {of.users.tied:,} alike" if of.users.tied else ""
        lines.append(f"{name} better for {of.users.better:,} of {users:,} users{alike}")
    beyond = f", {outside:,} of them not shown" if outside else ""
    return [*lines, f"99 % interval over {style.counted(users, 'user')}{beyond}"]
