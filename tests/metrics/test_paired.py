"""Comparisons of two models, against golden numbers, other libraries and enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srs_eval.errors import ConfigError, ScoreError
from srs_eval.metrics.paired import (
    compare,
    effective_users,
    linearised_se,
    resampled_weighted_means,
    superiority,
    user_weights,
    weighted_interval,
    weighted_mean,
)
from srs_eval.metrics.resample import bca_interval, resampled_means
from srs_eval.metrics.significance import holm, max_t, wilcoxon, wilson_interval

WEIGHTINGS = ("users", "reviews", "log_reviews")


@pytest.fixture(scope="module")
def six(cases):
    """Six users of very different sizes, two models, and what must come out."""
    inputs = cases["C27"]["inputs"]
    numbers = {
        name: np.array([math.nan if value == "NaN" else value for value in inputs[name]])
        for name in ("sizes", "A", "B", "auc_A")
    }
    return numbers, cases["C27"]["expected"]


def exactly(expected):
    return pytest.approx(expected, abs=1e-12, rel=0)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("model", ["A", "B"])
def test_golden_means(six, model, weighting):
    given, expected = six
    weights = user_weights(given["sizes"], weighting)
    assert weighted_mean(given[model], weights) == exactly(expected[f"model_{model}"][weighting])


def test_golden_means_over_the_users_that_have_a_number(six):
    given, expected = six
    for weighting in ("users", "reviews"):
        weights = user_weights(given["sizes"], weighting)
        mean = weighted_mean(given["auc_A"], weights)
        assert mean == exactly(expected["auc_A"][weighting])
    found = compare(given["auc_A"], given["A"])
    assert (found.n_users, found.n_left_out) == (expected["auc_A"]["n_users"], 2)


def test_golden_standard_errors_and_effective_users(six):
    given, expected = six
    reviews, users = (user_weights(given["sizes"], name) for name in ("reviews", "users"))
    errors = expected["linearised_se"]
    assert linearised_se(given["A"], reviews) == exactly(errors["A_reviews"])
    assert linearised_se(given["A"], users) == exactly(errors["A_users"])
    assert linearised_se(given["A"] - given["B"], reviews) == exactly(errors["diff_reviews"])
    assert effective_users(reviews) == exactly(expected["effective_users_reviews"])
    assert effective_users(users) == exactly(6)


def test_golden_comparison(six):
    given, expected = six
    for weighting in ("users", "reviews"):
        weights = user_weights(given["sizes"], weighting)
        found = compare(given["A"], given["B"], weights, resamples=99)
        assert found.difference == exactly(expected["diff_A_minus_B"][weighting])
    assert found.superiority == exactly(expected["superiority_A_ties_half"])
    assert found.se == exactly(expected["linearised_se"]["diff_reviews"])
    test, golden = found.wilcoxon, expected["wilcoxon"]
    assert (test.statistic, test.n_nonzero) == (golden["W"], golden["n_nonzero"])
    assert test.z == exactly(golden["z"])
    assert test.effect == exactly(golden["r_effect"])


def test_golden_superiority_with_ties_for_the_row(six):
    given, expected = six
    row = superiority(given["A"], given["B"], tie=1)
    assert row == exactly(expected["superiority_A_fsrs_rule"])
    # The other half of the matrix is what is left of it.
    column = superiority(given["B"], given["A"], tie=0)
    assert column == exactly(expected["superiority_B_fsrs_rule"]) == exactly(1 - row)


def test_golden_bootstrap_of_every_resample_there_is(six):
    given, expected = six
    golden = expected["exact_bootstrap_diff_reviews"]
    difference, weights = given["A"] - given["B"], user_weights(given["sizes"], "reviews")
    draws = itertools.product(range(6), repeat=6)
    every = np.array([np.bincount(drawn, minlength=6) for drawn in draws]) * weights
    means = np.sort([weighted_mean(difference, row) for row in every])
    assert len(means) == 6**6
    assert means.mean() == exactly(golden["mean"])
    assert means[int(0.005 * 6**6)] == exactly(golden["q005"])
    assert means[int(0.995 * 6**6) - 1] == exactly(golden["q995"])
    drawn = resampled_weighted_means(difference[:, None], weights, resamples=20_000)[:, 0]
    assert drawn.mean() == pytest.approx(golden["mean"], abs=4 * means.std() / math.sqrt(20_000))
    assert drawn.std() == pytest.approx(means.std(), rel=0.02)


def test_equal_weights_are_the_bootstrap_and_the_interval_of_the_summaries():
    values = np.random.default_rng(0).normal(size=(40, 3))
    values[3, 1] = np.nan
    for scale in (1.0, 1e-9, 1e9):
        drawn = resampled_weighted_means(values, np.full(40, scale), resamples=500)
        plain = resampled_means(values, resamples=500)
        assert drawn == pytest.approx(plain, abs=1e-12)
        found = weighted_interval(values[:, 1], np.full(40, scale), drawn[:, 1])
        assert found == pytest.approx(bca_interval(values[:, 1], plain[:, 1]), abs=1e-9)


def test_a_user_without_weight_is_no_user():
    rng = np.random.default_rng(1)
    values, weights = rng.normal(size=30), rng.integers(0, 4, 30).astype(float)
    held = weights > 0
    assert weighted_mean(values, weights) == pytest.approx(
        weighted_mean(values[held], weights[held])
    )
    assert linearised_se(values, weights) == pytest.approx(
        linearised_se(values[held], weights[held])
    )
    assert effective_users(weights) == pytest.approx(effective_users(weights[held]))


def test_shared_draws_keep_differences_paired():
    rng = np.random.default_rng(2)
    first, sizes = rng.normal(size=60), rng.integers(1, 3000, 60).astype(float)
    second = first + rng.normal(0, 0.01, 60)
    both = resampled_weighted_means(np.stack([first, second, first - second], 1), sizes)
    assert both[:, 0] - both[:, 1] == pytest.approx(both[:, 2], abs=1e-12)
    alone = resampled_weighted_means((first - second)[:, None], sizes)
    assert alone[:, 0] == pytest.approx(both[:, 2], abs=1e-12)
    assert both[:, 2].std() < both[:, 0].std() / 20
    assert both[:, 2].std() == pytest.approx(linearised_se(first - second, sizes), rel=0.1)


def test_users_missing_in_one_model_are_left_out_of_that_pair_and_counted():
    rng = np.random.default_rng(3)
    a, b, sizes = rng.random(20), rng.random(20), rng.integers(1, 99, 20)
    kept = np.arange(20) > 2
    a[0] = b[1] = a[2] = b[2] = np.nan
    found = compare(a, b, sizes)
    whole = compare(a[kept], b[kept], sizes[kept])
    assert (found.n_users, found.n_left_out) == (17, 3)
    for name in ("mean_a", "mean_b", "difference", "se", "superiority", "effective_users"):
        assert getattr(found, name) == pytest.approx(getattr(whole, name), abs=1e-12), name
    assert found.wilcoxon == whole.wilcoxon
    assert found.mean_a - found.mean_b == pytest.approx(found.difference)
    assert found.lo < found.difference < found.hi
    assert found.lo == pytest.approx(whole.lo, abs=0.05)


def test_the_interval_holds_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(4)
    held = []
    for _ in range(150):
        sizes = rng.lognormal(0, 0.5, 60)
        difference = rng.normal(0.3, 1, 60)
        found = compare(difference, np.zeros(60), sizes, resamples=399, level=0.9)
        held.append(found.lo <= 0.3 <= found.hi)
    assert 0.82 <= np.mean(held) <= 0.97


@pytest.mark.parametrize("users", [0, 1, 4])
def test_few_users_have_no_interval_and_raise_nothing(users):
    found = compare(np.full(users, 0.3), np.full(users, 0.4))
    assert math.isnan(found.lo)
    assert math.isnan(found.hi)
    assert math.isnan(found.se) is (users < 2)
    assert math.isnan(found.difference) is (users == 0)
    assert math.isnan(found.superiority) is (users == 0)


def test_equal_models_tie_everywhere():
    found = compare(np.full(9, 0.3), np.full(9, 0.3), np.arange(9))
    assert found.difference == found.lo == found.hi == found.se == 0
    assert found.superiority == 0.5
    assert math.isnan(found.wilcoxon.z)
    assert found.wilcoxon.n_nonzero == 0


def test_users_of_whom_none_counts_have_no_mean():
    found = compare(np.arange(6.0), np.ones(6), np.zeros(6))
    for name in ("mean_a", "difference", "lo", "hi", "se", "effective_users"):
        assert math.isnan(getattr(found, name)), name


def test_one_number_missing_everywhere_is_no_comparison():
    found = compare(np.full(6, np.nan), np.ones(6))
    assert (found.n_users, found.n_left_out) == (0, 6)
    assert math.isnan(found.difference)
    assert math.isnan(found.wilcoxon.p_value)


def test_the_direction_of_a_metric_decides_who_wins():
    a, b = np.array([-0.1, 0.2, 0.3]), np.array([-0.2, 0.1, 0.4])
    assert superiority(a, b) == pytest.approx(1 / 3)
    assert superiority(a, b, better="higher") == pytest.approx(2 / 3)
    assert superiority(a, b, better="zero") == pytest.approx(2 / 3)
    assert math.isnan(superiority(a, b, better="neither"))
    assert compare(a, b, better="zero").difference == pytest.approx(-0.1 / 3)


def test_weights_are_checked():
    with pytest.raises(ConfigError, match="'log' is not one of users, reviews, log_reviews"):
        user_weights([1, 2], "log")
    with pytest.raises(ScoreError, match="the same users"):
        compare(np.ones(3), np.ones(4))
    for wrong in (-1, np.nan, np.inf):
        with pytest.raises(ScoreError, match="weights of users are finite"):
            compare(np.ones(2), np.ones(2), [1, wrong])
    for weighting in WEIGHTINGS:
        assert user_weights([0, 1, 5], weighting)[0] == 0


@pytest.mark.parametrize("level", [0.95, 0.99])
@pytest.mark.parametrize(("successes", "n"), [(0, 1), (1, 1), (0, 40), (3, 40), (40, 40), (7, 9)])
def test_wilson_intervals_are_those_of_scipy(successes, n, level):
    from scipy.stats import binomtest

    oracle = binomtest(successes, n).proportion_ci(level, method="wilson")
    assert wilson_interval(successes, n, level=level) == pytest.approx(tuple(oracle), abs=1e-12)


def test_wilson_intervals_take_half_wins_and_no_users():
    lo, hi = wilson_interval(4.5, 6)
    assert 0 < lo < 0.75 < hi < 1
    assert all(map(math.isnan, wilson_interval(0, 0)))


@given(st.lists(st.integers(-6, 6), min_size=3, max_size=70))
@settings(max_examples=80, deadline=None)
def test_wilcoxon_is_that_of_scipy(differences):
    from scipy import stats

    values = np.array(differences, float)
    found = wilcoxon(values, correct_ties=True)
    if found.n_nonzero == 0:
        assert math.isnan(found.p_value)
        return
    oracle = stats.wilcoxon(values, zero_method="wilcox", method="asymptotic")
    assert found.statistic == oracle.statistic
    assert found.z == pytest.approx(-abs(oracle.zstatistic), abs=1e-12)
    plain = wilcoxon(values)
    assert plain.effect <= found.effect + 1e-12
    if found.n_nonzero > 50:
        assert found.p_value == pytest.approx(oracle.pvalue, abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5, 20, 50])
def test_small_wilcoxon_tests_are_counted_exactly(n):
    from scipy import stats

    values = np.random.default_rng(n).normal(0.3, 1, n)
    exact = stats.wilcoxon(values, method="exact").pvalue
    assert wilcoxon(values).p_value == pytest.approx(exact, rel=1e-9)


def test_ties_are_counted_exactly_too():
    values = np.array([1.0, 1, -1, 2, 2, 2, -3, 4, 4])
    ranks = np.array([2.0, 2, 2, 5, 5, 5, 7, 8.5, 8.5])
    signs = np.array(list(itertools.product([0, 1], repeat=9)))
    below = (signs @ ranks <= 9).mean()
    assert wilcoxon(values).statistic == 9
    assert wilcoxon(values).p_value == pytest.approx(2 * below)


def test_holm_adjusts_as_the_textbook_does():
    p = np.array([0.04, np.nan, 0.01, 0.03, 0.005])
    # 0.005 * 4, 0.01 * 3, 0.03 * 2, and no less than that: 0.04 * 1
    assert holm(p) == pytest.approx([0.06, np.nan, 0.03, 0.06, 0.02], nan_ok=True)
    assert holm([0.6, 0.7]).tolist() == [1, 1]
    assert holm([]).shape == (0,)
    assert np.isnan(holm([np.nan])).all()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_never_lowers_a_p_value_nor_changes_their_order(p):
    adjusted = holm(p)
    assert np.all(adjusted >= np.array(p))
    assert np.all(adjusted <= 1)
    assert np.all(np.diff(adjusted[np.argsort(p, kind="stable")]) >= 0)


def stepped_down(differences, resampled):
    """Romano and Wolf's algorithm as a plain loop."""
    spread = np.sqrt(((resampled - differences) ** 2).mean(axis=0))
    statistic = np.abs(differences) / spread
    null = np.abs(resampled - differences) / spread
    left, adjusted, before = list(range(len(differences))), {}, 0.0
    for best in sorted(left, key=lambda j: -statistic[j]):
        reached = sum(max(row[left]) >= statistic[best] for row in null)
        before = max(before, (1 + reached) / (1 + len(null)))
        adjusted[best] = before
        left.remove(best)
    return [adjusted[j] for j in range(len(differences))]


def test_max_t_is_the_plain_step_down_loop():
    rng = np.random.default_rng(6)
    scores = rng.normal([0.0, 0.2, 0.5, -0.4], 1, (40, 4)) + rng.normal(size=(40, 1))
    means = resampled_means(scores, resamples=300)
    found = max_t(scores.mean(axis=0), means)
    assert found == pytest.approx(stepped_down(scores.mean(axis=0), means))
    assert max_t(scores.mean(axis=0)[::-1], means[:, ::-1]) == pytest.approx(found[::-1])


def test_max_t_lets_undefined_and_constant_differences_be():
    rng = np.random.default_rng(7)
    means = rng.normal([0.3, 0.05], 0.1, (99, 2))
    plain = max_t(np.array([0.3, 0.05]), means)
    more = np.column_stack([means, np.full(99, np.nan), np.zeros(99), np.ones(99)])
    found = max_t(np.array([0.3, 0.05, np.nan, 0.0, 1.0]), more)
    assert found[:2] == pytest.approx(plain)
    assert math.isnan(found[2])
    assert found[3:].tolist() == [1, 0.01]
    assert np.isnan(max_t(np.array([0.3, 0.1]), means[:1])).all()


def test_max_t_rarely_finds_anything_among_equal_models():
    rng = np.random.default_rng(8)
    found = []
    for _ in range(100):
        scores = rng.normal(size=(80, 10))
        p = max_t(scores.mean(axis=0), resampled_means(scores, resamples=199))
        found.append(p.min() <= 0.05)
    assert np.mean(found) <= 0.13


def test_max_t_is_sharper_than_holm_where_comparisons_go_together():
    rng = np.random.default_rng(9)
    together = rng.normal(0.36, 1, (60, 1)) + rng.normal(0, 0.05, (60, 20))
    means = resampled_means(together, resamples=1999)
    t = together.mean(axis=0) / (together.std(axis=0, ddof=1) / math.sqrt(60))
    alone = np.array([math.erfc(value / math.sqrt(2)) for value in t])
    assert max_t(together.mean(axis=0), means).max() < holm(alone).min()
