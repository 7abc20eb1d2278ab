"""Distributions of scores over users."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from srs_eval.metrics.summary import summarise
from srs_eval.plots.figures import figure
from srs_eval.plots.style import save_figure
from srs_eval.plots.users_plot import plot_user_scores, users_figure


def drawn(scores, **options):
    axes = Figure().add_subplot()
    plot_user_scores(axes, scores, **options)
    return axes


def dots(axes):
    return [line for line in axes.lines if line.get_marker() == "o"]


@pytest.mark.parametrize("users", [0, 1, 61, 10_000])
def test_any_number_of_users_can_be_drawn(users, tmp_path):
    rng = np.random.default_rng(users)
    scores = {"log_loss": rng.gamma(9, 0.04, users), "mbe": np.zeros(users)}
    save_figure(users_figure(scores), tmp_path, "users", formats=["png"])


def test_median_and_mean_are_written_with_the_interval_that_the_tables_print():
    scores = np.array([0.1, 0.2, 0.3, 0.4, 1.0])
    table = summarise(["score"], scores[:, None], np.ones(5, np.int64), {})["score"]
    title = drawn(scores).get_title(loc="right")
    assert title == f"median 0.300, mean 0.400 [{table.lo:.3f}, {table.hi:.3f}]"
    bounded = drawn(scores, bounds=(0.0, 1.0)).get_title(loc="right")
    assert bounded == "median 0.300, mean 0.400 [0.000, 1.000]"


def test_users_without_a_score_are_counted():
    axes = drawn([0.5, 0.6, np.nan])
    assert [text.get_text() for text in axes.texts] == ["not defined for 1 user"]
    axes = drawn([np.nan, np.nan])
    assert [text.get_text() for text in axes.texts] == ["not defined for 2 users"]


def test_one_user_has_no_figure_of_a_distribution():
    assert figure("users", None, {"log_loss": np.array([0.3])}, {}, title="") is None
