"""Panels of metrics, what they say of models whose faults are known, and means over users."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate

from srs_eval.metrics.panel import Panel, default_panel, full_panel
from srs_eval.metrics.proper import LogLoss
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
    one = (names, scores[:1], sizes[:1], {"log_loss": 0.3})  # takes the interval of the cards
    row = summarise(*one, single_user={"log_loss": (0.05, 0.15)})["log_loss"]
    assert (row.mean_users, row.mean_reviews, row.lo, row.hi) == (0.3, 0.3, 0.05, 0.15)
    assert math.isnan(summarise(*one)["log_loss"].lo)
