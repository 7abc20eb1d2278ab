from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from srs_eval.errors import ScoreError
from srs_eval.metrics.clusters import clustered_difference
from srs_eval.metrics.intervals import single_user_intervals
from srs_eval.metrics.panel import Panel, default_panel
from srs_eval.metrics.proper import LogLoss
from srs_eval.metrics.resample import bca_interval, resampled_means
from srs_eval.metrics.temporal import Temporal
from srs_eval.metrics.threshold import Confusion


@pytest.mark.parametrize("n", [5, 19, 300])
def test_the_interval_equals_scipys_on_the_same_resamples(n):
    values = np.random.default_rng(n).exponential(1, n)
    reference = stats.bootstrap(
        (values,), np.mean, n_resamples=4999, method="BCa", confidence_level=0.99, rng=1
    )
    got = bca_interval(values, reference.bootstrap_distribution, expanded=False)
    interval = reference.confidence_interval
    assert got == pytest.approx((interval.low, interval.high), rel=1e-6)


def test_the_interval_agrees_with_scipys_on_its_own_resamples():
    values = np.random.default_rng(2).exponential(1, 100)
    interval = bca_interval(values, resampled_means(values[:, None])[:, 0], expanded=False)
    reference = stats.bootstrap(
        (values,), np.mean, n_resamples=9999, method="BCa", confidence_level=0.99, rng=3
    ).confidence_interval
    error = values.std() / 10
    assert interval == pytest.approx((reference.low, reference.high), abs=0.15 * error)


def test_resampled_means_follow_the_exact_distribution():
    values = np.array([0.4, 0.35, 0.3, 0.45, 0.28, 0.5])
    exact = np.sort([np.mean(drawn) for drawn in itertools.product(values, repeat=6)])
    means = resampled_means(values[:, None], resamples=20_000)[:, 0]
    for share in (0.05, 0.5, 0.95):
        assert np.quantile(means, share) == pytest.approx(np.quantile(exact, share), abs=0.002)


def test_columns_are_resampled_together(cases):
    inputs = cases["C27"]["inputs"]
    expected = cases["C27"]["expected"]["exact_bootstrap_diff_reviews"]
    weight = np.array(inputs["sizes"], float)
    difference = np.array(inputs["A"]) - np.array(inputs["B"])
    drawn = resampled_means(np.stack([weight * difference, weight], axis=1), resamples=40_000)
    ratios = drawn[:, 0] / drawn[:, 1]
    assert ratios.mean() == pytest.approx(expected["mean"], abs=2e-4)
    assert np.quantile(ratios, 0.005) == pytest.approx(expected["q005"], abs=2e-4)
    assert np.quantile(ratios, 0.995) == pytest.approx(expected["q995"], abs=3e-4)


def test_missing_values_are_left_out_of_their_column_only():
    rng = np.random.default_rng(0)
    values = rng.random((40, 3))
    values[5:20, 1] = np.nan
    values[:, 2] = np.nan
    means = resampled_means(values, resamples=500)
    alone = resampled_means(values[:, :1], resamples=500)
    assert means[:, :1] == pytest.approx(alone, abs=1e-14)
    assert means[:, 1].mean() == pytest.approx(np.nanmean(values[:, 1]), abs=0.02)
    assert np.isnan(means[:, 2]).all()
    assert np.isnan(bca_interval(values[:, 2], means[:, 2])).all()


def test_resamples_without_any_value_are_left_out():
    values = np.array([[0.2], *[[np.nan]] * 4, [0.6], [0.5], [0.4], [0.1]])
    means = resampled_means(values, resamples=20_000)
    assert 0 < np.isnan(means).sum() < 200
    lo, hi = bca_interval(values[:, 0], means[:, 0])
    assert 0.1 - 1e-12 <= lo <= hi <= 0.6 + 1e-12


def test_equal_values_have_no_width_and_four_values_no_interval():
    means = resampled_means(np.full((5, 1), 0.3), resamples=100)[:, 0]
    assert bca_interval(np.full(5, 0.3), means) == (0.3, 0.3)
    few = np.array([0.1, 0.2, 0.3, 0.4])
    assert np.isnan(bca_interval(few, resampled_means(few[:, None])[:, 0])).all()


def covered(n: int, *, expanded: bool) -> float:
    """Share of 300 intervals over n lognormal users that hold the true mean."""
    rng = np.random.default_rng(n)
    hits = 0
    for _ in range(300):
        values = rng.lognormal(0, 0.6, n)
        means = resampled_means(values[:, None], resamples=2000)[:, 0]
        lo, hi = bca_interval(values, means, expanded=expanded)
        hits += lo <= np.exp(0.18) <= hi
    return hits / 300


def test_the_interval_over_few_users_is_widened_to_hold_the_mean_more_often():
    assert covered(8, expanded=False) < covered(8, expanded=True)
    assert covered(8, expanded=True) > 0.94
    assert covered(30, expanded=True) > 0.96


def test_with_thousands_of_users_the_widening_is_nothing():
    values = np.random.default_rng(0).exponential(1, 9999)
    means = resampled_means(values[:, None])[:, 0]
    plain, wide = (bca_interval(values, means, expanded=flag) for flag in (False, True))
    assert wide == pytest.approx(plain, abs=2e-3 * (plain[1] - plain[0]))


def test_blocks_of_draws_do_not_show():
    values = np.random.default_rng(0).random((3000, 2))
    means = resampled_means(values, resamples=700)
    error = values.std(axis=0) / math.sqrt(3000)
    assert means.std(axis=0) == pytest.approx(error, rel=0.1)
    assert means.mean(axis=0) == pytest.approx(values.mean(axis=0), abs=4 * error[0] / 26)


def test_single_user_intervals_have_the_width_of_the_cluster_error(one_user):
    predictions = one_user(n=2000, cards=200)
    lo, hi = single_user_intervals(Panel([LogLoss()]), predictions, resamples=400)["log_loss"]
    losses = LogLoss().per_review(predictions)
    sums = np.bincount(predictions.card, losses - losses.mean(), minlength=200)
    error = math.sqrt((sums**2).sum()) / len(losses)
    assert (hi - lo) / 2 == pytest.approx(2.6 * error, rel=0.12)
    assert (hi + lo) / 2 == pytest.approx(losses.mean(), abs=1e-12)


def test_forgetting_curves_are_resampled_with_their_cards(one_user):
    class Slow:
        """The same number, but not known to be a mean over curves."""

        name, better, section = "slow", "lower", "time"
        bounds = (0.0, 1.0)

        def __call__(self, predictions):
            return Temporal()(predictions)

    both = single_user_intervals(Panel([Temporal(), Slow()]), one_user(curves=80), resamples=60)
    assert both["temporal_violation"] == pytest.approx(both["slow"], rel=1e-6)


def test_the_default_panel_has_single_user_intervals(one_user):
    predictions = one_user()
    panel = default_panel()
    scores = panel.score(predictions)
    intervals = single_user_intervals(panel, predictions, resamples=20)
    assert tuple(intervals) == panel.names
    for metric in panel:
        lo, hi = intervals[metric.name]
        if not getattr(metric, "has_interval", True):  # a level that chance alone would give
            assert math.isnan(lo + hi)
            continue
        assert lo <= scores[metric.name] <= hi
        assert metric.bounds[0] <= lo <= hi <= metric.bounds[1]
    again = single_user_intervals(panel, predictions, resamples=20)
    np.testing.assert_equal(intervals, again)


def test_one_card_has_no_interval(one_user):
    predictions = one_user()
    alone = replace(predictions, card=np.zeros_like(predictions.card))
    assert np.isnan(single_user_intervals(Panel([LogLoss()]), alone)["log_loss"]).all()


def test_undefined_scores_have_no_interval(one_user):
    predictions = one_user(n=60)
    recalled = replace(predictions, recalled=np.ones(60, bool), curves=None)
    intervals = single_user_intervals(default_panel(), recalled, resamples=10)
    assert np.isnan(intervals["auc"]).all()
    assert np.isnan(intervals["temporal_violation"]).all()
    assert np.isfinite(intervals["log_loss"]).all()


def test_curves_of_reviews_that_were_not_scored_are_refused(one_user):
    predictions = one_user()
    curves = predictions.curves
    stray = replace(curves, row=curves.row + 600)
    with pytest.raises(ScoreError, match=r"forgetting curve 0 .* not scored"):
        single_user_intervals(default_panel(), replace(predictions, curves=stray), resamples=2)


def test_reviews_that_are_alike_within_days_widen_the_interval(one_user):
    predictions = one_user(n=2000, cards=200)
    day = np.arange(2000) // 50
    bad_days = (np.random.default_rng(0).random(40) < 0.5)[day]
    alike = replace(predictions, recalled=predictions.recalled & ~bad_days)
    by_card = single_user_intervals(Panel([LogLoss()]), alike)["log_loss"]
    by_both = single_user_intervals(Panel([LogLoss()]), replace(alike, day=day))["log_loss"]
    assert by_both[1] - by_both[0] > 1.5 * (by_card[1] - by_card[0])
    mean, lo, hi = clustered_difference(LogLoss().per_review(alike), alike.card, day)
    assert mean == pytest.approx(sum(by_both) / 2)
    assert hi - lo == pytest.approx(by_both[1] - by_both[0], rel=0.2)


def test_confusion_statistics_are_resampled_as_the_ratios_they_are(one_user):
    class Slow:
        """The same number, but not known to be a ratio of sums."""

        name, better, section = "slow", "higher", "threshold"
        bounds = (0.0, 1.0)

        def __call__(self, predictions):
            return Confusion("npv", 0.9)(predictions)

    panel = Panel([Confusion("npv", 0.9), Slow()])
    both = single_user_intervals(panel, one_user(), resamples=50)
    assert both["confusion_npv_at_0_9"] == pytest.approx(both["slow"], rel=1e-6)


def test_a_difference_without_two_clusters_has_no_bounds():
    mean, lo, hi = clustered_difference(np.array([0.1, 0.3]), np.zeros(2, np.int64))
    assert mean == pytest.approx(0.2)
    assert np.isnan([lo, hi]).all()
    assert np.isnan(clustered_difference(np.empty(0), np.empty(0, np.int64))).all()


def test_means_over_reviews_are_resampled_as_the_means_they_are(one_user):
    class Slow:
        """The same number, but not known to be a mean over reviews."""

        name, better, section = "slow", "lower", "test"
        bounds = (0.0, math.inf)

        def __call__(self, predictions):
            return LogLoss()(predictions)

    both = single_user_intervals(Panel([LogLoss(), Slow()]), one_user(), resamples=50)
    assert both["log_loss"] == pytest.approx(both["slow"], rel=1e-6)


def test_few_days_give_the_width_of_the_clustered_difference(one_user):
    predictions = replace(one_user(n=600, cards=300), day=np.arange(600) // 100)
    losses = LogLoss().per_review(predictions)
    lo, hi = single_user_intervals(Panel([LogLoss()]), predictions, resamples=4000)["log_loss"]
    _, low, high = clustered_difference(losses, predictions.card, predictions.day)
    assert hi - lo == pytest.approx(high - low, rel=0.05)


def test_a_million_reviews_are_drawn_less_often(one_user, monkeypatch):
    class Counting:
        """Says how often it was asked."""

        name, better, section = "counting", "neither", "test"
        calls = 0

        def __call__(self, predictions):
            Counting.calls += 1
            return 0.5

    monkeypatch.setattr("srs_eval.metrics.intervals.ROWS_DRAWN", 30_000)
    single_user_intervals(Panel([Counting()]), one_user(n=600))
    assert Counting.calls == 1 + 50
    single_user_intervals(Panel([Counting()]), one_user(n=6000))
    assert Counting.calls == 2 + 50 + 30


@given(
    values=arrays(np.float64, 40, elements=st.floats(-100, 100, width=32)),
    cluster=arrays(np.int64, 40, elements=st.integers(-3, 8)),
)
def test_a_clustered_difference_does_not_depend_on_names_or_order(values, cluster):
    given_order = clustered_difference(values, cluster)
    turned = clustered_difference(values[::-1], 7 - 5 * cluster[::-1])
    assert turned == pytest.approx(given_order, rel=1e-7, abs=1e-9, nan_ok=True)


@given(arrays(np.float64, 12, elements=st.floats(-100, 100, width=32)))
def test_reviews_that_are_clusters_of_their_own_have_students_interval(values):
    mean, lo, hi = clustered_difference(values, np.arange(12))
    half = stats.t.ppf(0.995, 11) * values.std(ddof=1) / math.sqrt(12)
    assert (mean, lo, hi) == pytest.approx((mean, mean - half, mean + half), rel=1e-7, abs=1e-9)


def test_of_several_clusterings_the_widest_interval_counts():
    rng = np.random.default_rng(0)
    card, day = rng.integers(0, 100, 1000), np.arange(1000) // 25
    values = rng.normal(0, 1, 40)[day] + rng.normal(0, 1, 1000)
    assert clustered_difference(values, card, day) == clustered_difference(values, day)
    narrow = clustered_difference(values, card)
    assert narrow[2] - narrow[1] < clustered_difference(values, day)[2]
    assert np.isnan(clustered_difference(values, card, np.zeros(1000, np.int64))[1:]).all()


@given(arrays(np.float64, st.integers(5, 12), elements=st.floats(2**-7, 2, width=32)))
@settings(max_examples=50)
def test_the_widened_interval_holds_the_plain_one_and_stays_within_the_values(values):
    means = resampled_means(values[:, None], resamples=500)[:, 0]
    lo, hi = bca_interval(values, means)
    low, high = bca_interval(values, means, expanded=False)
    assert lo <= low + 1e-12
    assert high <= hi + 1e-12
    assert values.min() - 1e-12 <= lo <= hi <= values.max() + 1e-12
