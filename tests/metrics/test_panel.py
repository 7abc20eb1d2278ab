from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from cases import rest_nightly
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate

from srs_eval.metrics.panel import Panel, default_panel, full_panel
from srs_eval.metrics.proper import LogLoss
from srs_eval.metrics.threshold import confusion_statistics
from srs_eval.nouns.predictions import select

CONF = Path(__file__).parents[2] / "conf"
SECTIONS = {"test", "calibration", "discrimination", "threshold", "time"}


def build(option, *overrides):
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose(overrides=[f"+panel={option}", *overrides])
    return instantiate(config.panel, _convert_="all")


@dataclass(frozen=True)
class Constant:
    """A metric as a plug-in would write it, without any of ours."""

    name: str = "constant"
    number: float = 1.0
    better = "neither"
    section = "test"

    def __call__(self, predictions):
        return self.number


@pytest.mark.parametrize(
    ("option", "panel"), [("default", default_panel()), ("full", full_panel())]
)
def test_options_are_the_panels_of_the_library(option, panel):
    assert list(build(option)) == list(panel)
    assert panel.names[: len(default_panel().names)] == default_panel().names


def test_thresholds_can_be_set_and_metrics_left_out_from_the_command_line():
    names = build(
        "default", "panel.metrics.confusion.thresholds=[0.85]", "~panel.metrics.ece"
    ).names
    assert "confusion_tpr_at_0_85" in names
    assert not {"confusion_tpr_at_0_9", "ece"} & set(names)


@pytest.mark.parametrize("option", rest_nightly(["quick", "default", "full"], 2))
def test_every_option_scores(option, one_user):
    panel = build(option)
    scores = panel.score(one_user())
    assert tuple(scores) == panel.names
    assert all(math.isfinite(value) for value in scores.values())


def test_every_metric_says_its_direction_and_section():
    for metric in full_panel():
        assert metric.better in {"lower", "higher", "zero", "neither"}
        assert metric.section in SECTIONS


def test_families_are_opened_up():
    panel = Panel([LogLoss(), confusion_statistics([0.9])])
    assert len(panel.names) == 9
    assert Panel({"any": LogLoss(), "key": confusion_statistics([0.9])}).names == panel.names


def test_what_is_infinite_counts_as_undefined(one_user):
    assert math.isnan(Panel([Constant(number=math.inf)]).score(one_user())["constant"])


def test_no_predictions_make_every_metric_undefined(one_user):
    empty = select(replace(one_user(), curves=None), slice(0, 0))
    scores = default_panel().score(empty)
    assert all(math.isnan(value) for value in scores.values())
