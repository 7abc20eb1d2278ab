"""Panels of metrics, what they say of models whose faults are known, and means over users."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from scipy.special import expit

from srs_eval.metrics.panel import Panel, default_panel, full_panel
from srs_eval.metrics.proper import LogLoss
from srs_eval.metrics.score import score
from srs_eval.metrics.summary import summarise
from srs_eval.metrics.threshold import confusion_statistics
from srs_eval.nouns.predictions import select
from srs_eval.stats.estimate import mean_of_users

CONF = Path(__file__).parents[2] / "conf"


def build(option, *overrides):
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose(overrides=[f"+panel={option}", *overrides])
    return instantiate(config.panel, _convert_="all")


class Infinite:
    """A metric as a plug-in would write it, without any of ours."""

    name, better, section = "infinite", "neither", "test"

    def __call__(self, predictions):
        return math.inf


def test_options_are_the_panels_of_the_library_and_can_be_changed(one_user):
    for option, panel in (("default", default_panel()), ("full", full_panel())):
        assert list(build(option)) == list(panel)
        assert panel.names[: len(default_panel().names)] == default_panel().names
    overrides = "panel.metrics.confusion.thresholds=[0.85]", "~panel.metrics.ece"
    names = build("default", *overrides).names
    assert "confusion_tpr_at_0_85" in names
    assert not {"confusion_tpr_at_0_9", "ece"} & set(names)
    for panel in (build("quick"), full_panel()):
        scores = panel.score(one_user())
        assert tuple(scores) == panel.names
        assert all(math.isfinite(value) for value in scores.values())
    for metric in full_panel():
        assert metric.better in {"lower", "higher", "zero", "neither"}
        assert metric.section in {"test", "calibration", "discrimination", "threshold", "time"}


def test_families_are_opened_up_and_what_is_infinite_or_of_no_predictions_is_undefined(one_user):
    panel = Panel([LogLoss(), confusion_statistics([0.9])])
    assert len(panel.names) == 9
    assert Panel({"any": LogLoss(), "key": confusion_statistics([0.9])}).names == panel.names
    assert math.isnan(Panel([Infinite()]).score(one_user())["infinite"])
    empty = select(replace(one_user(), curves=None), slice(0, 0))
    assert all(math.isnan(value) for value in default_panel().score(empty).values())


def test_the_base_rate_looks_calibrated_but_tells_no_review_from_another(one_user):
    honest = one_user(n=6000)
    says = default_panel().score(replace(honest, p=np.full(6000, honest.recalled.mean())))
    for name in ("smece", "smece_exact", "ece", "mbe", "rmse_bins_by_p", "brier_skill"):
        assert says[name] == pytest.approx(0, abs=1e-9)
    assert says["corp_discrimination_log"] == pytest.approx(0, abs=1e-12)
    assert says["auc"] == 0.5
    assert says["normalized_entropy"] == pytest.approx(1)
    assert math.isnan(says["calibration_slope"])


@pytest.mark.parametrize("steep", [2, 0.5])
def test_an_overconfident_model_has_a_slope_below_1_and_a_timid_one_above(steep):
    rng = np.random.default_rng(0)
    logit = rng.normal(0, 1, 6000)
    recalled = rng.random(6000) < expit(logit)
    honest, says = (score(expit(times * logit), recalled) for times in (1, steep))
    assert says["calibration_slope"] == pytest.approx(1 / steep, rel=0.12)
    # The order is that of the truth, so that nothing but the calibration suffers.
    for name in ("auc", "corp_discrimination_log"):
        assert says[name] == pytest.approx(honest[name], abs=1e-12)
    for name in ("corp_miscalibration_log", "smece_exact"):
        assert says[name] > 2 * honest[name]


def test_users_reviews_and_all_together_are_told_apart():
    scores = np.array([[0.3, 0.7], [0.5, np.nan], [0.4, 0.6], [0.1, 0.9]])
    names, sizes = ["log_loss", "auc"], np.array([300, 100, 50, 0])
    found = summarise(names, scores, sizes, {"log_loss": 0.36}, bounds={"log_loss": (0.0, 0.4)})
    row = found["log_loss"]
    assert (row.mean_users, row.pooled, row.n_users) == (pytest.approx(0.325), 0.36, 4)
    assert row.mean_reviews == pytest.approx((0.3 * 300 + 0.5 * 100 + 0.4 * 50) / 450)
    assert row.n_effective == pytest.approx(450**2 / (300**2 + 100**2 + 50**2))
    lo, hi = mean_of_users(scores[:, 0]).interval()
    assert lo < 0 < 0.4 < hi
    assert (row.lo, row.hi) == (0, 0.4)  # cut off at the bounds
    row = found["auc"]
    assert (row.mean_users, row.n_users) == (pytest.approx(2.2 / 3), 3)
    assert (row.lo, row.hi) == pytest.approx(mean_of_users(scores[:, 1]).interval())
    assert row.mean_reviews == pytest.approx((0.7 * 300 + 0.6 * 50) / 350)
    assert row.n_effective == pytest.approx(350**2 / (300**2 + 50**2))
    assert math.isnan(row.pooled)


def test_the_interval_holds_the_true_mean_as_often_as_it_says():
    rng = np.random.default_rng(0)
    scores = rng.exponential(1, (60, 400))  # each column is another experiment
    rows = summarise([str(k) for k in range(400)], scores, np.ones(60), {})
    held = np.mean([row.lo <= 1 <= row.hi for row in rows.values()])
    assert 0.975 <= held <= 1


def test_a_single_user_takes_the_interval_of_the_cards():
    one = (["brier"], np.array([[0.1]]), np.array([5]), {"brier": 0.1})
    row = summarise(*one, single_user={"brier": (0.05, 0.15)})["brier"]
    assert (row.mean_users, row.mean_reviews, row.lo, row.hi) == (0.1, 0.1, 0.05, 0.15)
    assert math.isnan(summarise(*one)["brier"].lo)
