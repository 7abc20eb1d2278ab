"""Comparisons of two models on the same users, against golden numbers."""

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


def exactly(expected):
    return pytest.approx(expected, abs=1e-12, rel=0)


def test_golden_means_and_differences_of_six_users_of_very_different_sizes():
    case = json.loads(CASES.read_text(encoding="utf-8"))["C27"]
    sizes, a, b, auc = (
        np.array([math.nan if value == "NaN" else value for value in case["inputs"][name]])
        for name in ("sizes", "A", "B", "auc_A")
    )
    expected = case["expected"]
    for weighting in ("users", "reviews", "log_reviews"):
        weights = user_weights(sizes, weighting)
        for scores, name in ((a, "model_A"), (b, "model_B"), (auc, "auc_A")):
            if weighting in expected[name]:
                found = mean_of_users(scores, weights)
                assert found.mean == exactly(expected[name][weighting])
        if weighting in expected["diff_A_minus_B"]:
            found = paired_mean(a, b, weights)
            assert found.mean == exactly(expected["diff_A_minus_B"][weighting])
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
