"""What groups of features are worth to a model that tells it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from srs_eval.algorithms.algorithm import Contribution
from srs_eval.metrics.means import mean_of_users
from srs_eval.plots.style import (
    BLUE,
    INK,
    MUTED,
    SMALL,
    WIDTH,
    house_style,
    lettering,
    new_figure,
    style_axes,
    write_title,
)

# Of a single user, whose interval is that over days.
_Z = 2.5758293035489004


def plot_contributions(axes: Axes, users: Sequence[Sequence[Contribution]]) -> None:
    """Draw how much log loss each group of features saves, with 99 % intervals.

    Intervals are over users; those of a single user are over days. Groups that a user does not have
    count 0.
    """
    names = list(dict.fromkeys(found.name for user in users for found in user))
    gains = {
        name: [sum(f.gain for f in user if f.name == name) for user in users] for name in names
    }
    names.sort(key=lambda name: float(np.mean(gains[name])))
    style_axes(axes)
    for place, name in enumerate(names):
        mean = float(np.mean(gains[name]))
        if len(users) > 1:
            low, high = mean_of_users(np.array(gains[name])).interval()
        else:
            error = next(found.standard_error for found in users[0] if found.name == name)
            low, high = mean - _Z * error, mean + _Z * error
        axes.barh(place, mean, height=0.6, color=BLUE, alpha=0.45)
        axes.hlines(place, low, high, color=INK, lw=1.2)
    axes.axvline(0, color=MUTED, lw=0.8)
    axes.set_yticks(range(len(names)), [lettering(name) for name in names])
    axes.set_xlabel("log loss saved per training review", fontsize=SMALL + 0.5)


def contributions_figure(users: Sequence[Sequence[Contribution]], *, title: str = "") -> Figure:
    """Draw what forgetting depends on: the worth of groups of features, to at least one user."""
    groups = {found.name for user in users for found in user}
    with house_style():
        figure = new_figure(WIDTH, max(WIDTH / 3, 1.3 + 0.3 * len(groups)))
        plot_contributions(figure.subplots(), users)
        write_title(figure, "forgetting depends on", title)
    return figure
