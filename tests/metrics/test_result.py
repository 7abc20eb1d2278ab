from __future__ import annotations

import copy
import json
import math
import pickle

import numpy as np
import pytest

from srs_eval.metrics.calibration import MeanBias
from srs_eval.metrics.headline import HEADLINE
from srs_eval.metrics.panel import Panel, default_panel
from srs_eval.metrics.proper import Brier
from srs_eval.metrics.result import PanelResult
from srs_eval.metrics.score import score


@pytest.fixture(scope="module")
def result():
    rng = np.random.default_rng(0)
    p = rng.beta(9, 1.2, 400)
    return score(p, rng.random(400) < p, user=np.arange(400) % 8, resamples=20)


def test_it_is_a_dictionary_of_numbers(result):
    assert isinstance(result, dict)
    assert result.to_dict() == dict(result)
    assert type(result.to_dict()) is dict
    assert tuple(result) == ("n", "n_dropped", *default_panel().names)
    assert all(isinstance(value, int | float) for value in result.values())


def test_it_prints_a_line_for_each_score_and_names_the_undefined_below(result):
    text = str(result)
    lines = text.splitlines()
    assert lines[0] == "400 reviews; 99 % intervals from resampling users"
    assert repr(result) == text
    assert lines[-2] == "not defined here: rmse_bins"
    (line,) = [line for line in lines if line.startswith("log_loss  ")]
    lo, hi = result.intervals["log_loss"]
    for part in (f"{result['log_loss']:.4f}", f"{lo:.4f} … {hi:.4f}", "lower is better"):
        assert part in line
    assert all(line == line.rstrip() for line in lines)
    assert "nan" not in text


def test_it_prints_the_metrics_of_a_run_alone(result):
    shown = (*HEADLINE, "threshold_bias_at_0_9")
    assert set(result.shown) == set(shown)
    printed = {line.split()[0] for line in str(result).splitlines()[1:-2]}
    assert printed == {name for name in shown if not math.isnan(result[name])}
    more = len(result) - len(shown) - 2
    assert str(result).splitlines()[-1].startswith(f"{more} more")
    (smece,) = [line for line in str(result).splitlines() if line.startswith("smece ")]
    assert f"{result['smece_floor']:.4f} by chance" in smece


def test_of_a_panel_without_the_usual_metrics_it_prints_what_there_is():
    result = score([0.9, 0.8], [1, 0], panel=Panel([Brier(), MeanBias()]))
    assert result.shown == ("brier", "mbe")
    assert "to_frame" not in str(result)
    assert PanelResult({"n": 2, "log_loss": 0.3}).shown == ("log_loss",)


def test_it_says_how_many_reviews_were_left_out():
    result = score([0.9, math.nan, 0.8], [1, 1, 0], nan_policy="omit")
    assert str(result).splitlines()[0] == "2 reviews, 1 left out"


def test_a_frame_has_a_row_for_each_score(result):
    frame = result.to_frame()
    assert list(frame.columns) == ["score", "lo", "hi", "better"]
    assert list(frame.index) == list(result)
    assert frame.index.name == "metric"
    assert frame.loc["log_loss", "score"] == result["log_loss"]
    assert (frame.loc["auc", "lo"], frame.loc["auc", "hi"]) == result.intervals["auc"]
    assert frame.loc["log_loss", "better"] == "lower"
    assert frame.loc["n", "better"] == ""
    assert math.isnan(frame.loc["n", "lo"])


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda result: pickle.loads(pickle.dumps(result))]
)
def test_copies_keep_everything_that_belongs_to_the_scores(result, again):
    copied = again(result)
    assert type(copied) is PanelResult
    for name in ("better", "thresholds", "intervals", "interval_over", "level", "shown"):
        np.testing.assert_equal(getattr(copied, name), getattr(result, name))
    np.testing.assert_equal(dict(copied), dict(result))
    assert str(copied) == str(result)


def test_it_can_be_written_as_json(result):
    back = json.loads(json.dumps(result.to_dict()))
    np.testing.assert_equal(back, result.to_dict())
    assert json.loads(json.dumps(result.thresholds))[0]["threshold"] == 0.7
    assert set(json.loads(json.dumps(result.intervals))) == set(default_panel().names)
