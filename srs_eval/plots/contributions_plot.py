"""The worth of groups of features to a model."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
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
    gains = pd.DataFrame([{group.name: group.gain for group in user} for user in users]).fillna(0.0)
    means = gains.mean().sort_values(kind="stable")
    errors = {group.name: group.standard_error for group in users[0]}
    style.style_axes(axes)
    for row, (name, mean) in enumerate(means.items()):
        if len(users) > 1:
            low, high = mean_of_users(gains[name].to_numpy()).interval()
        else:
            low, high = mean - _Z * errors[str(name)], mean + _Z * errors[str(name)]
        axes.barh(row, mean, height=0.6, color=style.BLUE, alpha=0.45)
        axes.hlines(row, low, high, color=style.INK, lw=1.2)
    axes.axvline(0, color=style.MUTED, lw=0.8)
    axes.set_yticks(range(len(means)), list(means.index))
    axes.set_xlabel("log loss saved per training review", fontsize=style.SMALL + 0.5)


def contributions_figure(users: Sequence[Sequence[Contribution]], *, title: str = "") -> Figure:
    """Draw what forgetting depends on: the worth of groups of features, to at least one user."""
    groups = {group.name for user in users for group in user}
    height = max(style.WIDTH / 3, 1.3 + 0.3 * len(groups))
    with style.titled_figure("forgetting depends on", title, height=height) as figure:
        plot_contributions(figure.subplots(), users)
    return figure
