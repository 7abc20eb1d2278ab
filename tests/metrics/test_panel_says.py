"""What the panel says of models whose faults are known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from srs_eval.metrics.score import score

N = 6000


def expit(x):
    return 1 / (1 + np.exp(-x))


@pytest.fixture(scope="module")
def world():
    """Reviews of which the true chance is known: logit, outcomes, and facts."""
    rng = np.random.default_rng(0)
    logit = rng.normal(2, 1, N)
    recalled = rng.random(N) < expit(logit)
    facts = {
        "elapsed_days": rng.integers(1, 40, N),
        "nth_review": rng.integers(2, 12, N),
        "lapses": rng.integers(0, 3, N),
    }
    return logit, recalled, facts


@pytest.fixture(scope="module")
def honest(world):
    logit, recalled, facts = world
    return score(expit(logit), recalled, **facts)


def test_the_base_rate_looks_calibrated_but_tells_no_review_from_another(world, honest):
    _, recalled, facts = world
    says = score(np.full(N, recalled.mean()), recalled, **facts)
    for name in ("smece", "smece_exact", "ece", "mbe", "rmse_bins_by_p", "brier_skill"):
        assert says[name] == pytest.approx(0, abs=1e-9)
    assert says["corp_discrimination_log"] == pytest.approx(0, abs=1e-12)
    assert says["auc"] == 0.5
    assert says["normalized_entropy"] == pytest.approx(1)
    assert math.isnan(says["calibration_slope"])
    assert says["log_loss"] > honest["log_loss"]


def exploiting(recalled, facts):
    """Predict what the bin's outcomes were so far, less what it was told too much so far."""
    bins = {}
    p = np.empty(len(recalled))
    for row, key in enumerate(zip(*(column.tolist() for column in facts.values()), strict=True)):
        surplus, seen, hits = bins.get(key, (0.0, 1, 0.9))
        p[row] = float(np.clip(hits / seen - surplus, 0, 1))
        outcome = recalled[row]
        bins[key] = (surplus + p[row] - outcome, seen + 1, hits + outcome)
    return p


def test_who_watches_the_bins_is_far_below_the_floor_of_rmse_bins_at_a_terrible_log_loss(
    world, honest
):
    _, recalled, _ = world
    few = {
        "elapsed_days": np.ones(N),
        "nth_review": np.full(N, 2),
        "lapses": np.arange(N) % 2,
    }
    p = exploiting(recalled, few)
    says = score(p, recalled, **few)
    assert says["rmse_bins"] < 0.2 * says["rmse_bins_floor"]
    assert says["rmse_bins_debiased"] == 0
    assert says["log_loss"] > 2 * honest["log_loss"]
    assert says["normalized_entropy"] > 2
    assert says["smece_exact"] > 5 * honest["smece_exact"]
    assert says["log_loss_certain_wrong"] > 0


def test_an_overconfident_model_has_a_slope_below_1_and_a_timid_one_above(world, honest):
    logit, recalled, _ = world
    middle = logit.mean()
    overconfident = score(expit(middle + 2 * (logit - middle)), recalled)
    timid = score(expit(middle + 0.5 * (logit - middle)), recalled)
    assert overconfident["calibration_slope"] == pytest.approx(0.5, abs=0.06)
    assert timid["calibration_slope"] == pytest.approx(2, abs=0.24)
    for says in (overconfident, timid):
        # The order is that of the truth, so that nothing but the calibration suffers.
        assert says["auc"] == pytest.approx(honest["auc"], abs=1e-12)
        assert says["corp_discrimination_log"] == pytest.approx(honest["corp_discrimination_log"])
        assert says["corp_miscalibration_log"] > 2 * honest["corp_miscalibration_log"]
        assert says["smece_exact"] > 2 * honest["smece_exact"]
