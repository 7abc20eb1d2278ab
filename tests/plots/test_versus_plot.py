"""Two models, user by user."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from srs_eval.plots.versus_plot import plot_versus
from srs_eval.stats.paired import paired_mean, paired_signs


def drawn(first, second, **options):
    axes = Figure().add_subplot()
    return axes, plot_versus(axes, first, second, **options)


def words(axes):
    return "\n".join(text.get_text() for text in axes.texts)


def test_what_is_written_is_what_the_comparison_says():
    axes, found = drawn([0.1, 0.2, 0.5, 0.3], [0.2, 0.3, 0.4, 0.3], better="lower")
    first, second = np.array([0.1, 0.2, 0.5, 0.3]), np.array([0.2, 0.3, 0.4, 0.3])
    assert found == (paired_mean(first, second), paired_signs(first, second))
    assert "A better for 2 of 4 users, 1 alike" in words(axes)
    assert "mean difference -0.025 [-0.305, 1.004]" in words(axes)


def test_where_neither_way_is_better_nobody_is():
    axes, found = drawn([0.1, 0.2], [0.2, 0.3])
    assert found.difference.mean == pytest.approx(-0.1)
    assert "better" not in words(axes)


def test_users_without_both_scores_are_left_out():
    axes, found = drawn([0.1, np.nan, 0.3], [0.2, 0.1, np.inf], better="lower")
    assert sum(found.users) == 1
    assert "over 1 user" in words(axes)
    _, missing = drawn([np.nan], [0.1])
    assert missing is None
