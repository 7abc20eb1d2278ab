"""Tests and p-values of comparisons, samples of users, and draws of clusters."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from srs_eval.comparison.by_users import superiority_matrix
from srs_eval.stats.estimate import mean_of_users
from srs_eval.stats.paired import effective_users, paired_mean, paired_signs, user_weights
from srs_eval.stats.resample import cluster_counts, sample_of
from srs_eval.stats.significance import (
    SignTest,
    behind_leader,
    holm,
    sign_test,
    wilson_interval,
)


def test_users_are_counted_by_the_sign_of_the_difference():
    losses = np.array([-0.1, 0.2, -0.3, 0.0, 1e-14, math.nan])
    assert sign_test(losses, rounding=1e-13) == SignTest(2, 1, 2)
    assert sign_test(losses) == SignTest(2, 2, 1)


@settings(deadline=None)
@given(st.integers(0, 60), st.integers(0, 60))
@example(0, 0)
@example(29, 0)
def test_sign_tests_are_those_of_scipy_and_agree_with_their_interval(better, worse):
    found = SignTest(better, worse, 3)
    if not better + worse:
        assert found.p_value == 1
        assert np.isnan([*found.interval(), SignTest(0, 0, 0).p_value]).all()
        return
    oracle = binomtest(better, better + worse)
    assert found.p_value == pytest.approx(oracle.pvalue, rel=1e-9)
    expected = tuple(oracle.proportion_ci(0.99, "exact"))
    assert found.interval() == pytest.approx(expected, abs=1e-9)
    for alpha in (0.05, 0.01, 0.01 / 6):
        lo, hi = found.interval(1 - alpha)
        assert (found.p_value < alpha) == (lo > 0.5 or hi < 0.5)


def test_holm_adjusts_as_the_textbook_does():
    p = np.array([0.04, np.nan, 0.01, 0.03, 0.005])
    # 0.005 * 4, 0.01 * 3, 0.03 * 2, and no less than that: 0.04 * 1
    expected = [0.06, np.nan, 0.03, 0.06, 0.02]
    assert holm(p).p_value == pytest.approx(expected, nan_ok=True)
    assert holm([0.6, 0.7]).p_value.tolist() == [1, 1]
    assert holm([]).p_value.shape == (0,)
    assert np.isnan(holm([np.nan]).p_value).all()
    assert holm([0.001, 0.2, 0.004, 0.3]).factor.tolist() == [4, 3, 3, 3]


small = st.one_of(st.floats(0, 0.02), st.floats(0, 1), st.just(math.nan))


@settings(deadline=None)
@given(st.lists(small, min_size=2, max_size=12), st.integers(1, 11))
def test_factors_decide_as_adjusted_p_values_do_and_models_further_behind_change_nothing(p, kept):
    plain = [None] * len(p), [True] * len(p)
    whole = behind_leader(p, *plain)
    for found in (holm(p), whole):
        np.testing.assert_array_equal(np.array(p) * found.factor < 0.01, found.p_value < 0.01)
    kept = min(kept, len(p))
    part = behind_leader(p[:kept], *(each[:kept] for each in plain))
    np.testing.assert_array_equal(part.p_value, whole.p_value[:kept])
    np.testing.assert_array_equal(part.factor, whole.factor[:kept])


def test_models_found_worse_do_not_count_unless_they_are_better_for_others():
    found = behind_leader([1e-9, 1e-9, 0.5, 0.002], [None] * 4, [True] * 4)
    assert found.factor.tolist() == [1, 1, 1, 3]
    assert found.p_value == pytest.approx([1e-9, 1e-9, 0.5, 0.006])
    kept = behind_leader([1e-9, 1e-9, 0.5, 0.002], [None] * 4, [False] * 4)
    assert kept.factor.tolist() == [1, 3, 6, 10]


def test_a_twin_counts_once_and_is_judged_alike():
    twice = behind_leader([0.3, 0.3, 0.001], [None, 0, None], [True] * 3)
    once = behind_leader([0.3, 0.001], [None] * 2, [True] * 2)
    assert twice.p_value.tolist() == [once.p_value[0], *once.p_value]
    assert twice.factor.tolist() == [1, 1, 3]


@pytest.mark.parametrize("level", [0.95, 0.99])
@pytest.mark.parametrize(("successes", "n"), [(0, 1), (1, 1), (0, 40), (3, 40), (40, 40), (7, 9)])
def test_wilson_intervals_are_those_of_scipy(successes, n, level):
    oracle = binomtest(successes, n).proportion_ci(level, method="wilson")
    assert wilson_interval(successes, n, level=level) == pytest.approx(tuple(oracle), abs=1e-12)
    assert np.isnan(wilson_interval(0, 0)).all()


USERS = ("zoe", 30, "ann", 4, "10", "ben", 200, "eve", 1, "Bob")


@pytest.mark.parametrize("size", [1, 4, 9, 10, 11])
def test_a_sample_has_the_same_users_of_any_order_and_keeps_it(size):
    sample = sample_of(USERS, size)
    assert len(set(sample)) == min(size, len(USERS))
    for order in (USERS, USERS[::-1], sorted(USERS, key=str)):
        assert [*sample_of(order, size)] == [user for user in order if user in sample]


@pytest.mark.parametrize(("clusters", "resamples"), [(5, 200), (3_000, 700)])
def test_each_resample_draws_as_many_clusters_as_there_are(clusters, resamples):
    blocks = list(cluster_counts(clusters, resamples, 7))
    drawn = np.concatenate(blocks)
    assert drawn.shape == (resamples, clusters)
    assert (drawn.sum(axis=1) == clusters).all()
    assert drawn.mean(axis=0) == pytest.approx(np.ones(clusters), abs=6 / np.sqrt(resamples))
    again = np.concatenate(list(cluster_counts(clusters, resamples, 7)))
    assert (again == drawn).all()
    assert len(np.unique(drawn, axis=0)) > resamples / 4


CASES = Path(__file__).parents[1] / "golden" / "metric_cases.json"


def exactly(expected):
    return pytest.approx(expected, abs=1e-12, rel=0)


def test_golden_means_and_differences_of_six_users_of_very_different_sizes():
    case = json.loads(CASES.read_text(encoding="utf-8"))["C27"]
    sizes, a, b, auc = (
        np.array([math.nan if value == "NaN" else value for value in case["inputs"][name]])
        for name in ("sizes", "A", "B", "auc_A")
    )
    expected = case["expected"]
    for weighting in ("users", "reviews"):
        weights = user_weights(sizes, weighting)
        assert mean_of_users(auc, weights).mean == exactly(expected["auc_A"][weighting])
        found = paired_mean(a, b, weights).mean
        assert found == exactly(expected["diff_A_minus_B"][weighting])
    weights = user_weights(sizes, "reviews")
    assert effective_users(weights) == exactly(expected["effective_users_reviews"])
    shares = superiority_matrix(np.column_stack([a, b]))
    assert shares[0, 1] == exactly(expected["superiority_A_ties_half"])
    counts = paired_signs(a, b)
    row = (counts.better + counts.tied) / sum(counts)
    assert row == exactly(expected["superiority_A_fsrs_rule"])


def test_users_missing_in_one_model_are_left_out_of_that_pair():
    rng = np.random.default_rng(3)
    a, b, sizes = rng.random(20), rng.random(20), rng.integers(1, 99, 20).astype(float)
    kept = np.arange(20) > 2
    a[0] = b[1] = a[2] = b[2] = np.nan
    assert paired_mean(a, b, sizes) == paired_mean(a[kept], b[kept], sizes[kept])
    assert paired_signs(a, b) == paired_signs(a[kept], b[kept])
    whole, part = (superiority_matrix(np.column_stack(ab)) for ab in ((a, b), (a[kept], b[kept])))
    assert whole[0, 1] == part[0, 1]
    assert user_weights([4, 0, 1], "users").tolist() == [1, 0, 1]
    assert math.isnan(effective_users(np.zeros(3)))
