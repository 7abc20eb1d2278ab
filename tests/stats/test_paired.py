"""Comparisons of two models, against golden numbers, other libraries and enumeration."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from srs_eval.comparison.by_users import superiority_matrix
from srs_eval.stats.estimate import mean_of_users
from srs_eval.stats.paired import effective_users, paired_mean, paired_signs, user_weights

CASES = Path(__file__).parents[1] / "golden" / "metric_cases.json"
WEIGHTINGS = ("users", "reviews", "log_reviews")


@pytest.fixture(scope="module")
def six():
    """Six users of very different sizes, two models, and the expected numbers."""
    cases = json.loads(CASES.read_text(encoding="utf-8"))
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
        found = paired_mean(given["A"], given["B"], weights)
        assert found.mean == exactly(expected["diff_A_minus_B"][weighting])
    shares = superiority_matrix(np.column_stack([given["A"], given["B"]]))
    assert shares[0, 1] == exactly(expected["superiority_A_ties_half"])
    counts = paired_signs(given["A"], given["B"])
    row = (counts.better + counts.tied) / sum(counts)
    assert row == exactly(expected["superiority_A_fsrs_rule"])
    assert effective_users(user_weights(given["sizes"], "reviews")) == exactly(
        expected["effective_users_reviews"]
    )


def test_users_missing_in_one_model_are_left_out_of_that_pair():
    rng = np.random.default_rng(3)
    a, b, sizes = rng.random(20), rng.random(20), rng.integers(1, 99, 20).astype(float)
    kept = np.arange(20) > 2
    a[0] = b[1] = a[2] = b[2] = np.nan
    assert paired_mean(a, b, sizes) == paired_mean(a[kept], b[kept], sizes[kept])
    assert paired_signs(a, b) == paired_signs(a[kept], b[kept])
    whole, part = (superiority_matrix(np.column_stack(ab)) for ab in ((a, b), (a[kept], b[kept])))
    assert whole[0, 1] == part[0, 1]
