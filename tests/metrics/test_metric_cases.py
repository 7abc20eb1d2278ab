"""The golden cases: numbers worked out once, by other code, and agreed on."""

from __future__ import annotations

import math

import numpy as np
import pytest
from metric_functions import (
    auc,
    brier,
    brier_skill,
    ece,
    log_loss,
    mbe,
    normalized_entropy,
    rmse_bins,
    rmse_bins_by_p,
    smece,
    smece_exact,
)
from pairs import confusion, counted

from srs_eval.metrics.bins import FSRS_OPTIMIZER, WIKI_2024, log_bins
from srs_eval.metrics.corp import corp
from srs_eval.metrics.proper import LogLossCertainWrong, LogLossClipped
from srs_eval.metrics.score import score
from srs_eval.metrics.smece import lattice_of, residual_field
from srs_eval.metrics.threshold import STATISTICS


def smoothed(sigma):
    return lambda p, recalled: residual_field(counted(p, recalled)).absolute_integral(sigma)


METRICS = {
    **{"log_loss": log_loss, "normalized_entropy": normalized_entropy, "brier": brier},
    **{"bss": brier_skill, "auc": auc, "mbe": mbe, "ece10": ece},
    **{"smece_relplot": smece, "smece_exact": smece_exact, "rmse_bins_old_log20": rmse_bins_by_p},
    **{"smece_sigma_0_05": smoothed(0.05), "smece_sigma_0_01": smoothed(0.01)},
    "sigma_relplot_x1024": lambda p, recalled: lattice_of(counted(p, recalled))[1] * 1024,
    "n_recalled": lambda p, recalled: np.sum(recalled),
}


def number(value):
    return math.nan if value == "NaN" else value


def near(expected, tolerance):
    return pytest.approx(number(expected), abs=max(tolerance, 1e-15), rel=0, nan_ok=True)


def assert_counts(counts, expected):
    for name in ("tp", "fp", "fn", "tn"):
        assert counts[name] == expected[name.upper()], name
    for statistic in STATISTICS:
        assert counts[statistic] == near(expected[statistic.upper()], 1e-14), statistic


SMALL = ("C01", "C03", "C06", "C12", "C14a", "C14b", "C21")


@pytest.mark.parametrize("case", [*SMALL, pytest.param("C30a", marks=pytest.mark.slow)])
def test_metrics_of_predictions_and_outcomes(cases, weyl, case):
    inputs, expected, tolerances = (cases[case][part] for part in ("inputs", "expected", "tol"))
    if not isinstance(tolerances, dict):
        tolerances = {"default": tolerances}
    is_drawn = "n" in inputs
    p, recalled = weyl(inputs["n"], inputs["shift"]) if is_drawn else (inputs["p"], inputs["y"])
    assert METRICS.keys() & expected.keys()
    for name in METRICS.keys() & expected.keys():
        tolerance = tolerances.get(name, tolerances["default"])
        assert METRICS[name](p, recalled) == near(expected[name], tolerance), name
    if "lapse" in inputs:
        facts = (inputs["delta_t"], inputs["i"], inputs["lapse"])
        assert rmse_bins(p, recalled, *facts) == near(expected["rmse_bins"], 1e-12)
    for bin_of, expected_bin in expected.get("log20_index", {}).items():
        assert log_bins([float(bin_of)]).tolist() == [expected_bin]
    for threshold, counts in expected.get("confusion", {}).items():
        assert_counts(confusion(p, recalled, float(threshold)), counts)


def test_certain_predictions_are_clipped_and_counted(cases):
    inputs, expected = cases["C04"]["inputs"], cases["C04"]["expected"]
    losses = [log_loss(inputs[k]["p"], inputs[k]["y"]) for k in "abc"]
    names = ("right", "wrong", "one_wrong_of_four")
    assert losses == [near(expected[name], 1e-12) for name in names]
    wrong = [LogLossCertainWrong().of_outcomes(inputs[k]["p"], inputs[k]["y"]) for k in "abc"]
    assert wrong == expected["n_certain_wrong"]
    assert LogLossClipped().of_outcomes(inputs["a"]["p"], inputs["a"]["y"]) == expected["n_clipped"]
    assert brier(inputs["b"]["p"], inputs["b"]["y"]) == expected["brier_wrong"]
    single = np.array(inputs["b"]["p"], np.float32)
    assert log_loss(single, inputs["b"]["y"]) == near(expected["wrong"], 1e-12)
    inputs, expected = cases["C16"]["inputs"], cases["C16"]["expected"]
    for name in ("all_wrong", "all_right"):
        p, recalled = inputs[name]["p"] * 50, inputs[name]["y"] * 50
        assert smece_exact(p, recalled) == near(expected[name]["smece_exact"], 1e-6)
        assert smece(p, recalled) == near(expected[name]["smece_relplot"], 1e-12)
    swap = smece_exact(inputs["swap"]["p"], inputs["swap"]["y"])
    assert swap == near(expected["swap"]["smece_exact_ab"], 1e-9)


def test_confusion_on_the_threshold_in_the_precision_of_the_predictions(cases):
    inputs, expected = cases["C08"]["inputs"], cases["C08"]["expected"]
    for threshold in inputs["thresholds"]:
        assert_counts(confusion(inputs["p"], inputs["y"], threshold), expected[str(threshold)])
    inputs, expected = cases["C09"]["inputs"], cases["C09"]["expected"]
    for dtype, name in (("float32", "float32_native"), ("float64", "float64")):
        p = np.array(inputs["p"], dtype)
        assert_counts(confusion(p, inputs["y"], inputs["threshold"]), expected[name])


def test_the_parts_of_scores(cases):
    inputs, expected = cases["C23"]["inputs"], cases["C23"]["expected"]
    found = corp(counted(inputs["p"], inputs["y"]))
    heights = found.recalibrated[np.searchsorted(found.p, inputs["p"])]
    assert heights == pytest.approx(expected["recalibrated"], abs=1e-12)
    for parts, wanted in ((found.brier, "brier_parts"), (found.log, "log_parts")):
        values = [parts.miscalibration, parts.discrimination, parts.uncertainty]
        assert values == pytest.approx([expected[wanted][k] for k in ("MCB", "DSC", "UNC")])


def test_missing_numbers_are_left_out(cases):
    inputs, expected = cases["C10"]["inputs"], cases["C10"]["expected"]["omit"]
    p, recalled = ([number(value) for value in inputs[column]] for column in "py")
    got = score(p, recalled, nan_policy="omit")
    for name, value in expected.items():
        assert got[name] == near(value, 1e-12), name


@pytest.mark.parametrize(
    ("published", "scales"), [("fsrs-optimizer", FSRS_OPTIMIZER), ("wiki-2024", WIKI_2024)]
)
def test_rounding_of_rmse_bins(cases, published, scales):
    inputs, expected = cases["C18"]["inputs"], cases["C18"]["expected"][published]
    intervals = np.maximum(inputs["delta_t"], 1e-6)
    assert scales.interval.rounded(intervals).tolist() == expected["delta_t"]
    assert scales.reviews.rounded(inputs["i"]).tolist() == expected["i"]
    assert scales.lapses.rounded(inputs["lapse"][1:]).tolist() == expected["lapse"][1:]
