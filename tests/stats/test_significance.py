"""Sign tests, and p-values of many comparisons at once."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

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
