from __future__ import annotations

import math

import numpy as np
import pytest
from metric_functions import brier, brier_skill, log_loss, normalized_entropy
from sklearn.metrics import brier_score_loss, d2_log_loss_score
from sklearn.metrics import log_loss as reference_log_loss

from srs_eval.errors import ScoreError
from srs_eval.metrics.proper import Brier, LogLoss, LogLossCertainWrong, LogLossClipped


def test_they_agree_with_scikit_learn(weyl):
    p, recalled = weyl(3000, 0.05)
    assert log_loss(p, recalled) == pytest.approx(reference_log_loss(recalled, p), abs=1e-12)
    assert brier(p, recalled) == pytest.approx(brier_score_loss(recalled, p), abs=1e-12)
    skill = 1 - normalized_entropy(p, recalled)
    assert skill == pytest.approx(d2_log_loss_score(recalled, p), abs=1e-12)


def test_one_outcome_leaves_the_skill_undefined():
    for outcome in (0, 1):
        assert math.isnan(normalized_entropy([0.3, 0.6], [outcome] * 2))
        assert math.isnan(brier_skill([0.3, 0.6], [outcome] * 2))
        assert math.isfinite(log_loss([0.3, 0.6], [outcome] * 2))


def test_nothing_scores_nan_without_a_warning():
    for metric in (log_loss, normalized_entropy, brier, brier_skill):
        assert math.isnan(metric([], []))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_certain_and_wrong_costs_the_same_in_every_precision(dtype):
    p = np.array([1.0, 0.0], dtype)
    assert log_loss(p, [0, 1]) == pytest.approx(52 * math.log(2), abs=1e-9)


def test_scores_of_reviews_average_to_the_score(one_user):
    predictions = one_user()
    for metric in (LogLoss(), Brier()):
        each = metric.per_review(predictions)
        assert each.shape == predictions.p.shape
        assert each.mean() == pytest.approx(metric(predictions), abs=1e-14)


def test_counts_are_metrics_too(one_user):
    predictions = one_user()
    predictions.p[:3] = [1.0, 0.0, 1.0]
    predictions.recalled[:3] = [False, False, True]
    assert LogLossClipped()(predictions) == 3
    assert LogLossCertainWrong()(predictions) == 1


@pytest.mark.parametrize(
    ("p", "recalled", "message"),
    [
        ([0.5, 1.2], [1, 0], "p is outside \\[0, 1\\] at position 1: 1.2"),
        ([0.5, math.nan], [1, 0], "p is NaN at position 1"),
        ([0.5, math.inf], [1, 0], "outside"),
        ([0.5, 0.5], [1, 2], "recalled is neither 0 nor 1 at position 1: 2"),
        ([0.5, 0.5], [1], "recalled has shape \\(1,\\), but p has \\(2,\\)"),
        ([[0.5]], [[1]], "p has shape \\(1, 1\\), expected one dimension"),
        (["high"], [1], "p cannot be read as numbers"),
    ],
)
def test_what_cannot_be_scored_is_refused(p, recalled, message):
    with pytest.raises(ScoreError, match=message):
        log_loss(p, recalled)


def test_all_problems_are_named_at_once():
    with pytest.raises(ScoreError) as refused:
        log_loss([math.nan, 1.5, -0.5], [1, 0, 7])
    assert "NaN at position 0" in str(refused.value)
    assert "position 1 and 1 more: 1.5" in str(refused.value)
    assert "neither 0 nor 1 at position 2: 7" in str(refused.value)
