"""Figures write and draw what the metrics say."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from metric_functions import METRIC, one_user, predicted, scored

from srs_eval import plots
from srs_eval.algorithms.algorithm import Contribution
from srs_eval.metrics.bins import FSRS_OPTIMIZER
from srs_eval.metrics.means import summarise
from srs_eval.metrics.predictions import select
from srs_eval.metrics.reliability import reliability_of
from srs_eval.metrics.significance import wilson_interval
from srs_eval.metrics.tally import tally
from srs_eval.plots.bins_plot import bin_gaps
from srs_eval.plots.calibration_plot import plot_calibration
from srs_eval.plots.contributions_plot import plot_contributions
from srs_eval.plots.curves_plot import elapsed_sums, plot_temporal, recall_of
from srs_eval.plots.roc_plot import plot_roc
from srs_eval.plots.users_plot import plot_user_scores


def odd():
    """Go through predictions of which a figure can show little."""
    rng = np.random.default_rng(7)
    p = rng.beta(9, 1.2, 1000)
    recalled = rng.uniform(size=1000) < p
    yield predicted(np.zeros(0), [])
    yield predicted([0.9], [True])
    yield predicted(np.full(1000, 0.88), recalled)
    yield predicted(np.round(p, 1), recalled)
    yield predicted(p, np.ones(1000))
    yield predicted(1.0 - recalled, recalled)  # certain and wrong
    yield predicted(1 - 1e-9 * p, recalled)


def on_axes(plot, *arguments, **options):
    """Draw on axes of one's own; return them, and what the function returned."""
    axes = Figure().add_subplot()
    return axes, plot(axes, *arguments, **options)


def forgetting(predictions):
    nth = plots.nth_review_of_curves(predictions)
    return plots.forgetting_figure(elapsed_sums(predictions), predictions.curves, nth_review=nth)


FIGURES = (plots.calibration_figure, plots.roc_figure, plots.bins_figure)


@pytest.mark.slow
def test_figures_of_odd_inputs_are_drawn_and_nothing_warns():
    some, name = one_user(300), "a_1 on $x$ =1"  # taken literally
    every = [plots.calibration_figure(some, title=name)]
    every += [make(each) for each in odd() for make in FIGURES]
    for p in (some.curves.p[:, ::-1], np.nan * some.curves.p):
        every.append(forgetting(replace(some, curves=replace(some.curves, p=p))))
    of_users = [np.exp(np.random.default_rng(0).normal(-1, 0.3, n)) for n in (0, 1, 99)]
    every += [plots.users_figure({"log_loss": some, "mbe": 0 * some}) for some in of_users]
    for figure in filter(None, every):
        figure.draw_without_rendering()


def key(axes):
    return axes.get_legend().get_title().get_text()


@pytest.fixture(scope="module")
def some():
    user = one_user(3000)  # some reviews on the day of the one before
    return replace(user, elapsed_days=user.elapsed_days * (np.arange(3000) % 50 > 0))


def test_the_error_its_interval_and_floor_and_operating_points(some):
    axes, curve = on_axes(plot_calibration, some.p, some.recalled)
    written, chance = (line.split() for line in key(axes).splitlines()[:2])
    metric = reliability_of(tally(some.p, some.recalled))
    for place, expected in ((1, metric.smece), (3, metric.half_width)):
        assert float(written[place]) == pytest.approx(expected, abs=6e-4)
    assert float(chance[-1]) == pytest.approx(metric.smece_floor, abs=6e-4)
    assert curve.smece == metric.smece
    axes, _ = on_axes(plot_calibration, np.append(some.p, 0.01), np.append(some.recalled, False))
    assert f"1 predicted below {axes.get_xlim()[0]:.2f} not shown" in key(axes)
    p, recalled = some.p, some.recalled
    axes, curve = on_axes(plot_roc, p, recalled, thresholds=(0.7, 0.9))
    (line,) = [line for line in axes.lines if line.get_gid() == "operating points"]
    expected = [((p[~recalled] >= t).mean(), (p[recalled] >= t).mean()) for t in (0.7, 0.9)]
    np.testing.assert_allclose(line.get_xydata(), expected)
    assert key(axes) == f"AUC {curve.auc:.3f}\nn = 3,000 reviews"


def test_rmse_bins_is_the_metric_lapses_included_and_a_bin_has_the_reviews_of_its_ranges(some):
    gaps = bin_gaps(some)
    assert gaps.rmse == pytest.approx(scored(METRIC["rmse_bins"], some))
    assert gaps.floor == pytest.approx(scored(METRIC["rmse_bins_floor"], some))
    thirds = [select(some, np.arange(3000) % 3 == k) for k in range(3)]
    added = bin_gaps(sum(FSRS_OPTIMIZER.sums(third, every=True) for third in thirds))
    np.testing.assert_allclose(added.gap, gaps.gap, equal_nan=True)
    assert (added.beyond_chance == gaps.beyond_chance).all()
    column, row = gaps.intervals.index("4-13"), gaps.reviews.index("7-12")
    inside = (some.elapsed_days >= 4) & (some.elapsed_days <= 13)
    inside &= (some.nth_review >= 7) & (some.nth_review <= 12)
    assert (gaps.n.sum(), gaps.n[row, column]) == (len(some), inside.sum())
    assert gaps.gap[row, column] == pytest.approx((some.p - some.recalled)[inside].mean())


def test_forgetting_curves_their_median_and_how_often_recall_does_not_fall(some):
    rising = "not falling: 100 % of pairs\n(rising 100 %, flat 0 %)"
    for way, text in ((1, "recall falls at every later time"), (-1, rising)):
        curves = replace(some.curves, p=some.curves.p[:, ::way])
        axes, _ = on_axes(plot_temporal, curves)
        assert key(axes) == text
        median = next(line for line in axes.lines if line.get_label() == "median curve")
        ends = np.median(curves.p[:, [0, -1]], axis=0)
        assert median.get_ydata()[[0, -1]] == pytest.approx(ends)


def test_recall_over_time_is_that_of_the_reviews_in_bins_of_whole_days(some):
    later, days = some.elapsed_days > 0, some.elapsed_days[some.elapsed_days > 0]
    figure = forgetting(some)
    recall = recall_of(elapsed_sums(some))
    assert (len(recall.n), recall.same_day) == (14, (~later).sum())
    assert (recall.n.sum(), recall.recalled.sum()) == (later.sum(), some.recalled[later].sum())
    assert recall.predicted @ recall.n == pytest.approx(some.p[later].sum())
    assert np.log(recall.days) @ recall.n == pytest.approx(np.log(days).sum())
    assert (np.diff(recall.days) > 0).all()
    (bars,) = figure.axes[1].containers
    ends = np.array([segment[:, 1] for segment in bars[2][0].get_segments()])
    expected = wilson_interval(recall.recalled, recall.n, level=0.95)
    np.testing.assert_allclose(ends.T, expected)
    whole = predicted(np.full(22, 0.9), np.ones(22), elapsed_days=np.arange(1.0, 23))
    assert elapsed_sums(whole)[:, 0].max() == 1  # each of these days has a cell of its own


def test_median_and_mean_of_users_with_the_interval_that_the_tables_print():
    scores = np.array([0.1, 0.2, 0.3, 0.4, 1.0])
    table = summarise(["score"], scores[:, None], np.ones(5, np.int64), {})["score"]
    axes, _ = on_axes(plot_user_scores, np.append(scores, np.nan))
    assert axes.get_xlabel() == f"median 0.300, mean 0.400 [{table.lo:.3f}, {table.hi:.3f}]"
    assert [text.get_text() for text in axes.texts] == ["not defined for 1 user"]
    axes, _ = on_axes(plot_user_scores, scores, bounds=(0.0, 1.0))
    assert axes.get_xlabel() == "median 0.300, mean 0.400 [0.000, 1.000]"


def test_contributions_are_means_over_users_from_the_largest_down():
    one = (Contribution("today", 0.004, 0.001), Contribution("deck", -0.001, 0.002))
    two = (Contribution("today", 0.002, 0.001), Contribution("deck", 0.0, 0.002))
    axes, _ = on_axes(plot_contributions, [one, two])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["deck", "today"]
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([-0.0005, 0.003])
    axes, _ = on_axes(plot_contributions, [one])
    interval = axes.collections[1].get_segments()[0][:, 0]  # of one user: over days
    assert interval == pytest.approx([0.004 - 0.002576, 0.004 + 0.002576], abs=1e-6)
