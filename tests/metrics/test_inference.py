"""Estimates, intervals and tests of means over users, against other programs."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from interval_coverage import missed, simulated
from scipy.special import stdtrit
from scipy.stats import binomtest
from statsmodels.stats.multitest import multipletests

from srs_eval.metrics.means import (
    Estimate,
    clustered_mean,
    effective_users,
    mean_of_users,
    paired_signs,
    ratio_of_sums,
    user_weights,
)
from srs_eval.metrics.significance import (
    SignTest,
    behind_leader,
    exact_interval,
    holm,
    wilson_interval,
)

SQUARES = np.arange(1, 11) ** 2 / 10
# Values, weights, interval at 99 %, p-value; computed by another program.
ORACLES = {
    "three users": ([1, 2, 4], None, (-6.419555637, 27.07572532), 0.1180828963),
    "no weight": ([1, 2, 4, 99], [1, 1, 1, 0], (-6.419555637, 27.07572532), 0.1180828963),
    "no value": ([1, 2, 4, math.nan], None, (-6.419555637, 27.07572532), 0.1180828963),
    "weighted": (SQUARES, range(1, 11), (1.211514903, 19.72024552), 0.00287714789),
    "two effective": ([1, 2, 3], [4, 1, 1], (-53.01237636, 56.01237636), 0.536714892),
    "all zero": ([0, 0, 0], None, (0, 0), 1),
    "all the same": ([0.01] * 6, None, (0.01, 0.01), 0),
    "opposite": ([-1, 1], None, (-63.65674116, 63.65674116), 1),
}


def estimated(values, weights=None, **options):
    weights = None if weights is None else np.array(weights, float)
    return mean_of_users(np.array(values, float), weights, **options)


@pytest.mark.parametrize("case", ORACLES)
def test_intervals_and_p_values_are_those_computed_elsewhere(case):
    values, weights, interval, p_value = ORACLES[case]
    found = estimated(values, weights)
    assert found.interval() == pytest.approx(interval, rel=1e-8, abs=1e-15)
    assert found.p_value == pytest.approx(p_value, rel=1e-8)
    assert found.is_zero == (case == "all zero")


@pytest.mark.parametrize("skewness", [9e-7, -9e-7, 1.1e-6, -1.1e-6, 0.1])
def test_the_wider_of_students_and_halls_interval_is_taken_on_each_side(skewness):
    """Also where the skewness is so small that Hall's formula has no digits."""
    with localcontext(prec=40):
        a, t = Decimal(skewness), Decimal(float(stdtrit(9, 0.995)))
        hall = [3 / a * ((1 + a * (at - a / 6)) ** (Decimal(1) / 3) - 1) for at in (t, -t)]
        expected = float(min(-t, -hall[0])), float(max(t, -hall[1]))
    assert Estimate(0.0, 1.0, skewness, 9).interval() == pytest.approx(expected, rel=1e-9)


def test_without_two_users_of_similar_weight_there_is_no_interval_and_rounding_is_none():
    for values, weights, mean in (
        *(([math.nan], None, math.nan), ([0.5], None, 0.5), ([1, 2], [0, 0], math.nan)),
        ([1, 2, 3], [1e6, 1, 1], 1.000003),
    ):
        found = estimated(values, weights)
        assert found.mean == pytest.approx(mean, nan_ok=True, abs=1e-6)
        assert np.isnan([*found.interval(), found.p_value]).all()
    tiny = [1e-17, 2e-17, 1e-17, 4e-17]
    rounding = estimated(tiny, size=0.5)
    assert (*rounding.interval(), rounding.p_value) == (0, 0, 1)
    assert 0 < estimated(tiny).p_value < 0.2  # real, if scores are as small


samples = st.lists(st.integers(-1000, 1000), min_size=2, max_size=30).filter(
    lambda values: len(set(values)) > 1
)


@settings(deadline=None, max_examples=50)
@given(samples, st.integers(0, 99))
def test_the_p_value_is_small_exactly_if_the_interval_leaves_out_0(values, seed):
    for weights in (None, np.random.default_rng(seed).lognormal(0, 0.5, len(values))):
        found = estimated(values, weights)
        if math.isnan(found.se):
            continue
        for alpha in (0.05, 0.01, 0.0001):
            lo, hi = found.interval(1 - alpha)
            assert (found.p_value < alpha) == (lo > 0 or hi < 0)
            assert found.mirrored().interval(1 - alpha) == pytest.approx((-hi, -lo))
        if 1e-9 < found.p_value < 1:
            bounds = np.abs(found.interval(1 - found.p_value))
            assert bounds.min() == pytest.approx(0, abs=1e-6 * found.se)


def test_a_ratio_moves_without_a_row_as_far_as_is_said():
    """Rows with 0 below keep what is above them."""
    above, below = np.array([1.0, 2.0, 0.5, 0.0, 1.0]), np.array([2.0, 3.0, 0.0, 0.0, 2.5])
    rests = [np.delete([0, 1, 2, 4], number) for number in range(4)]
    moves = [4.5 / 7.5 - above[rest].sum() / below[rest].sum() for rest in rests]
    found = ratio_of_sums(above, below)
    assert found.mean == pytest.approx(4.5 / 7.5)
    assert found.se == pytest.approx(math.sqrt(3 / 4 * np.sum(np.square(moves))))
    assert found.df == pytest.approx(7.5**2 / (4 + 9 + 6.25) - 1)
    third = np.sum(np.power(moves, 3)) / np.sum(np.square(moves)) ** 1.5
    assert found.skewness == pytest.approx(third)


def test_variances_by_card_and_by_day_are_added():
    rng = np.random.default_rng(2)
    values, card, day = rng.normal(size=300), rng.integers(0, 30, 300), rng.integers(0, 12, 300)
    parts = [clustered_mean(values, cluster) for cluster in (card, day)]
    both = clustered_mean(values, card, day)
    assert both.se**2 == pytest.approx(sum(part.se**2 for part in parts))
    freedom = both.se**4 / sum(part.se**4 / part.df for part in parts)
    assert both.df == pytest.approx(freedom)
    third = sum(part.se**3 * part.skewness for part in parts)
    assert both.skewness == pytest.approx(third / both.se**3)
    alone, users = clustered_mean(values, np.arange(300)), mean_of_users(values)
    assert (*alone.interval(), alone.p_value) == pytest.approx((*users.interval(), users.p_value))
    twice = clustered_mean(np.tile(values, 2), 7 - 5 * np.tile(card, 2))
    assert twice.interval() == pytest.approx(parts[0].interval())
    one_larger = clustered_mean(values, np.maximum(np.arange(300) - 280, 0))
    assert 0 < one_larger.se < np.inf
    one_day = clustered_mean(np.array([0.1, 0.3]), np.array([0, 1]), np.zeros(2))
    assert one_day.mean == pytest.approx(0.2)
    assert np.isnan([one_day.se, one_day.skewness, one_day.df, *one_day.interval()]).all()
    assert math.isnan(clustered_mean(np.zeros(0), np.zeros(0)).mean)
    rounding = clustered_mean(np.array([1e-17, 2e-17, 1e-17]), np.arange(3), size=0.5)
    assert (rounding.mean, rounding.se) == (0, 0)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 60), st.integers(0, 60))
@example(0, 0)
@example(29, 0)
@example(40, 0)
def test_sign_tests_and_intervals_of_shares_are_those_of_scipy(better, worse):
    n, found = better + worse, SignTest(better, worse, 3)
    if not n:
        assert found.p_value == 1
        missing = *exact_interval(0, 0), *wilson_interval(0, 0), SignTest(0, 0, 0).p_value
        assert np.isnan(missing).all()
        return
    oracle = binomtest(better, n)
    assert found.p_value == pytest.approx(oracle.pvalue, rel=1e-9)
    for alpha in (0.05, 0.01, 0.01 / 6):
        lo, hi = exact_interval(better, n, level=1 - alpha)
        assert (lo, hi) == pytest.approx(oracle.proportion_ci(1 - alpha, "exact"), abs=1e-9)
        assert (found.p_value < alpha) == (lo > 0.5 or hi < 0.5)
        wilson = tuple(oracle.proportion_ci(1 - alpha, "wilson"))
        assert wilson_interval(better, n, level=1 - alpha) == pytest.approx(wilson, abs=1e-12)


small = st.one_of(st.floats(0, 0.02), st.floats(0, 1), st.just(math.nan))


@settings(deadline=None, max_examples=50)
@given(st.lists(small, max_size=12), st.integers(1, 11))
def test_factors_decide_as_adjusted_p_values_do_and_models_further_behind_change_nothing(p, size):
    found, defined = holm(p), [value for value in p if not math.isnan(value)]
    if defined:  # Holm's are those of statsmodels, and NaN is no comparison
        expected = multipletests(defined, method="holm")[1]
        assert found.p_value[~np.isnan(p)] == pytest.approx(expected)
    assert np.isnan(found.p_value).tolist() == np.isnan(p).tolist()
    plain = [None] * len(p), [True] * len(p)
    whole, part = (
        behind_leader(p, *plain),
        behind_leader(p[:size], *(each[:size] for each in plain)),
    )
    for adjusted in (found, whole):
        np.testing.assert_array_equal(np.array(p) * adjusted.factor < 0.01, adjusted.p_value < 0.01)
    np.testing.assert_array_equal(part.p_value, whole.p_value[:size])
    np.testing.assert_array_equal(part.factor, whole.factor[:size])


def test_models_found_worse_do_not_count_unless_better_for_others():
    assert holm([0.001, 0.2, 0.004, 0.3]).factor.tolist() == [4, 3, 3, 3]
    p = [1e-9, 1e-9, 0.5, 0.002]
    found = behind_leader(p, [None] * 4, [True] * 4)
    assert found.factor.tolist() == [1, 1, 1, 3]
    assert found.p_value == pytest.approx([1e-9, 1e-9, 0.5, 0.006])
    assert behind_leader(p, [None] * 4, [False] * 4).factor.tolist() == [1, 3, 6, 10]


def test_users_are_weighted_and_those_missing_in_one_model_are_left_out_of_that_pair():
    rng = np.random.default_rng(3)
    a, b, sizes = rng.random(20), rng.random(20), rng.integers(1, 99, 20).astype(float)
    present = np.arange(20) > 2
    a[0] = b[1] = a[2] = b[2] = np.nan
    assert mean_of_users(a - b, sizes) == mean_of_users((a - b)[present], sizes[present])
    assert paired_signs(a, b) == paired_signs(a[present], b[present])
    a, b = np.array([0.4, 0.7, 0.2, 0.5, 0.5 + 1e-13, math.nan]), np.full(6, 0.5)
    assert paired_signs(a, b) == SignTest(2, 1, 2)  # as small as rounding is no difference
    assert paired_signs(1e-3 * a, 1e-3 * b - 1e-5) == SignTest(2, 3, 0)
    assert paired_signs(0 * a, 0 * b) == SignTest(0, 0, 5)
    assert user_weights([4, 0, 1], "users").tolist() == [1, 0, 1]
    assert user_weights([4, 0, 1], "reviews").tolist() == [4, 0, 1]
    assert user_weights([5, 0, 1], "log_reviews") == pytest.approx([math.log(5), 0, 0])
    assert effective_users(np.array([3.0, 1.0, 0.0])) == pytest.approx(16 / 10)
    assert math.isnan(effective_users(np.zeros(3)))


def test_intervals_of_simulated_users_hold_the_true_mean():
    headline = [quantity for quantity in simulated(users=3_000) if quantity.is_headline]
    held = [1 - sum(missed(quantity, users, 250)) for quantity in headline for users in (10, 40)]
    assert 0.975 < np.mean(held) <= 1
