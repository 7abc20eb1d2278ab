from __future__ import annotations

import pytest
from metric_functions import brier, log_loss, normalized_entropy
from sklearn.metrics import brier_score_loss, d2_log_loss_score
from sklearn.metrics import log_loss as reference_log_loss

from srs_eval.metrics.proper import LogLossCertainWrong, LogLossClipped


def test_they_agree_with_scikit_learn(weyl):
    p, recalled = weyl(3000, 0.05)
    assert log_loss(p, recalled) == pytest.approx(reference_log_loss(recalled, p), abs=1e-12)
    assert brier(p, recalled) == pytest.approx(brier_score_loss(recalled, p), abs=1e-12)
    skill = 1 - normalized_entropy(p, recalled)
    assert skill == pytest.approx(d2_log_loss_score(recalled, p), abs=1e-12)


def test_counts_are_metrics_too(one_user):
    predictions = one_user()
    predictions.p[:3] = [1.0, 0.0, 1.0]
    predictions.recalled[:3] = [False, False, True]
    assert LogLossClipped()(predictions) == 3
    assert LogLossCertainWrong()(predictions) == 1
