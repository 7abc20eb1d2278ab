"""The worth of groups of features to a model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from srs_eval.algorithms.algorithm import Contribution
from srs_eval.metrics.means import mean_of_users
from srs_eval.plots import style

# Of a single user, whose interval is that over days.
_Z = 2.5758293035489004


def plot_contributions(axes: Axes, users: Sequence[Sequence[Contribution]]) -> None:
    """Draw how much log loss each group of features saves, with 99 % intervals.

    Intervals are over users; those of a single user are over days. Groups that a user does not have
    count 0.
    """
    names = list(dict.fromkeys(group.name for user in users for group in user))
    gains = {
        name: [sum(g.gain for g in user if g.name == name) for user in users] for name in names
    }
    names.sort(key=lambda name: float(np.mean(gains[name])))
    style.style_axes(axes)
    for row, name in enumerate(names):
        mean = float(np.mean(gains[name]))
        if len(users) > 1:
            low, high = mean_of_users(np.array(gains[name])).interval()
        else:
            error = next(group.standard_error for group in users[0] if group.name == name)
            low, high = mean - _Z * error, mean + _Z * error
        axes.barh(row, mean, height=0.6, color=style.BLUE, alpha=0.45)
        axes.hlines(row, low, high, color=style.INK, lw=1.2)
    axes.axvline(0, color=style.MUTED, lw=0.8)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("log loss saved per training review", fontsize=style.SMALL + 0.5)


def contributions_figure(users: Sequence[Sequence[Contribution]], *, title: str = "") -> Figure:
    """Draw what forgetting depends on: the worth of groups of features, to at least one user."""
    groups = {group.name for user in users for group in user}
    height = max(style.WIDTH / 3, 1.3 + 0.3 * len(groups))
    with style.titled_figure("forgetting depends on", title, height=height) as figure:
        plot_contributions(figure.subplots(), users)
    return figure
