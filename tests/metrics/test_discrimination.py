from __future__ import annotations

import math

import numpy as np
import pytest
from metric_functions import auc
from pairs import counted
from sklearn.metrics import roc_curve

from srs_eval.metrics.discrimination import roc_of
from srs_eval.metrics.threshold import Confusion, confusion_statistics


def test_the_complete_curve_is_kept_while_it_is_short(weyl):
    p, recalled = weyl(300, 0.05)
    p = p.round(2)
    curve = roc_of(counted(p, recalled))
    fpr, tpr, _ = roc_curve(recalled, p, drop_intermediate=False)
    assert curve.fpr == pytest.approx(fpr)
    assert curve.tpr == pytest.approx(tpr)


def test_a_long_curve_is_thinned_without_moving_it(weyl):
    p, recalled = weyl(50_000, 0.05)
    curve = roc_of(counted(p, recalled), points=501)
    assert len(curve.fpr) <= 501
    assert (curve.fpr[0], curve.tpr[0], curve.fpr[-1], curve.tpr[-1]) == (0, 0, 1, 1)
    assert np.all(np.diff(curve.fpr) >= 0)
    assert np.all(np.diff(curve.tpr) >= 0)
    assert curve.auc == pytest.approx(auc(p, recalled), abs=1e-14)
    assert np.trapezoid(curve.tpr, curve.fpr) == pytest.approx(curve.auc, abs=2e-3)


def test_operating_points_lie_on_the_curve(weyl):
    p, recalled = weyl(400, 0.05)
    curve = roc_of(counted(p, recalled), thresholds=(0.7, 0.9))
    on_curve = set(zip(curve.fpr.tolist(), curve.tpr.tolist(), strict=True))
    assert [threshold for threshold, _, _ in curve.at] == [0.7, 0.9]
    assert {(fpr, tpr) for _, fpr, tpr in curve.at} <= on_curve


def test_a_curve_with_one_outcome_is_empty():
    curve = roc_of(counted([0.95, 0.5], [1, 1]), thresholds=[0.9])
    assert len(curve.fpr) == len(curve.tpr) == 0
    assert math.isnan(curve.auc)
    assert curve.at[0][2] == 0.5
    assert math.isnan(curve.at[0][1])


def test_names_say_statistic_and_threshold():
    names = [metric.name for metric in confusion_statistics([0.9, 0.95])]
    assert names[0] == "confusion_tpr_at_0_9"
    assert names[-1] == "confusion_npv_at_0_95"
    assert Confusion("tpr", 1).name == "confusion_tpr_at_1"
