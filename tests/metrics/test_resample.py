from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from srs_eval.metrics.clusters import clustered_difference

from srs_eval.metrics.resample import bca_interval, resampled_means


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
    values = np.random.default_rng(0).exponential(1, 3000)
    means = resampled_means(values[:, None])[:, 0]
    plain, wide = (bca_interval(values, means, expanded=flag) for flag in (False, True))
    assert wide == pytest.approx(plain, abs=2e-3 * (plain[1] - plain[0]))


def test_blocks_of_draws_do_not_show():
    values = np.random.default_rng(0).random((3000, 2))
    means = resampled_means(values, resamples=700)
    error = values.std(axis=0) / math.sqrt(3000)
    assert means.std(axis=0) == pytest.approx(error, rel=0.1)
    assert means.mean(axis=0) == pytest.approx(values.mean(axis=0), abs=4 * error[0] / 26)


def test_a_difference_without_two_clusters_has_no_bounds():
    mean, lo, hi = clustered_difference(np.array([0.1, 0.3]), np.zeros(2, np.int64))
    assert mean == pytest.approx(0.2)
    assert np.isnan([lo, hi]).all()
    assert np.isnan(clustered_difference(np.empty(0), np.empty(0, np.int64))).all()


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
