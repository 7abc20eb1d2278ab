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


def test_it_prints_the_metrics_of_a_run_and_names_the_undefined(result, golden_text):
    few = score([0.9, math.nan, 0.8], [1, 1, 0], nan_policy="omit")
    other = score([0.9, 0.8], [1, 0], panel=Panel([Brier(), MeanBias()]))
    golden_text("scores_printed", "\n\n".join(map(str, (result, few, other))))
    assert repr(result) == str(result)
    assert set(result.shown) == {*HEADLINE, "threshold_bias_at_0_9"}
    assert PanelResult({"n": 2, "log_loss": 0.3}).shown == ("log_loss",)


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
