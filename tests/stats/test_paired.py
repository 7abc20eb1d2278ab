"""Comparisons of two models, against golden numbers, other libraries and enumeration."""

from __future__ import annotations

import math

import numpy as np
import pytest

from srs_eval.errors import ConfigError, ScoreError
from srs_eval.stats.estimate import mean_of_users
from srs_eval.stats.paired import compare, effective_users, superiority, user_weights
from srs_eval.stats.significance import SignTest

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
    found = mean_of_users(given[model], weights).mean
    assert found == exactly(expected[f"model_{model}"][weighting])


def test_golden_means_over_the_users_that_have_a_number(six):
    given, expected = six
    for weighting in ("users", "reviews"):
        found = mean_of_users(given["auc_A"], user_weights(given["sizes"], weighting))
        assert found.mean == exactly(expected["auc_A"][weighting])


def test_golden_comparison(six):
    given, expected = six
    for weighting in ("users", "reviews"):
        weights = user_weights(given["sizes"], weighting)
        found = compare(given["A"], given["B"], weights)
        assert found.difference.mean == exactly(expected["diff_A_minus_B"][weighting])
    counts = found.users
    share = (counts.better + counts.tied / 2) / sum(counts)
    assert share == exactly(expected["superiority_A_ties_half"])
    assert effective_users(user_weights(given["sizes"], "reviews")) == exactly(
        expected["effective_users_reviews"]
    )


def test_golden_superiority_with_ties_for_the_row(six):
    given, expected = six
    row = superiority(given["A"], given["B"], tie=1)
    assert row == exactly(expected["superiority_A_fsrs_rule"])
    # The other half of the matrix is what is left of it.
    column = superiority(given["B"], given["A"], tie=0)
    assert column == exactly(expected["superiority_B_fsrs_rule"]) == exactly(1 - row)


def test_users_missing_in_one_model_are_left_out_of_that_pair():
    rng = np.random.default_rng(3)
    a, b, sizes = rng.random(20), rng.random(20), rng.integers(1, 99, 20)
    kept = np.arange(20) > 2
    a[0] = b[1] = a[2] = b[2] = np.nan
    assert compare(a, b, sizes) == compare(a[kept], b[kept], sizes[kept])


def test_equal_models_tie_everywhere():
    found = compare(np.full(9, 0.3), np.full(9, 0.3), np.arange(9))
    assert found.difference.interval() == (0, 0)
    assert found.difference.p_value == 1
    assert found.users == SignTest(0, 0, 9)


def test_users_of_whom_none_counts_have_no_mean():
    found = compare(np.arange(6.0), np.ones(6), np.zeros(6))
    assert math.isnan(found.difference.mean)
    nothing = compare(np.full(6, np.nan), np.ones(6))
    assert math.isnan(nothing.difference.mean)
    assert nothing.users == SignTest(0, 0, 0)


def test_the_direction_of_a_metric_decides_who_wins():
    a, b = np.array([-0.1, 0.2, 0.3]), np.array([-0.2, 0.1, 0.4])
    assert superiority(a, b) == pytest.approx(1 / 3)
    assert superiority(a, b, better="higher") == pytest.approx(2 / 3)
    assert superiority(a, b, better="zero") == pytest.approx(2 / 3)
    assert math.isnan(superiority(a, b, better="neither"))
    assert compare(a, b, better="zero").difference.mean == pytest.approx(-0.1 / 3)


def test_weights_are_checked():
    with pytest.raises(ConfigError, match="'log' is not one of users, reviews, log_reviews"):
        user_weights([1, 2], "log")
    with pytest.raises(ScoreError, match="the same users"):
        compare(np.ones(3), np.ones(4))
    for wrong in (-1, np.nan, np.inf):
        with pytest.raises(ScoreError, match="weights of users are finite"):
            compare(np.ones(2), np.ones(2), [1, wrong])
    with pytest.raises(ScoreError, match="finite, or NaN"):
        compare([0.3, math.inf], [0.3, 0.4])
    for weighting in WEIGHTINGS:
        assert user_weights([0, 1, 5], weighting)[0] == 0
