"""What other libraries say of metrics, and golden cases: numbers worked out once by other code."""

import json
import math
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from metric_functions import auc, brier, ece, log_loss, of_outcomes, smece, smece_exact
from sklearn import metrics as sklearn
from sklearn.calibration import calibration_curve
from statsmodels.nonparametric.smoothers_lowess import lowess
from statsmodels.stats.proportion import proportion_confint

from srs_eval.metrics.reliability import ICI_CELLS as CELLS
from srs_eval.metrics.scores import log_bins, um_plus
from srs_eval.metrics.tally import tally
from srs_eval.metrics.threshold import RATES, roc_of, threshold_rows


def drawn(n, decimals=16, shape=(9, 1.2)):
    rng = np.random.default_rng(n)
    p = rng.beta(*shape, n).round(decimals)
    return p, rng.random(n) < p


@pytest.fixture(scope="module")
def data():
    return drawn(3000)


@pytest.mark.parametrize("decimals", [1, 2, 16])
def test_scores_are_those_of_scikit_learn_and_model_diagnostics(data, decimals):
    from model_diagnostics import scoring

    p, recalled = np.clip(data[0].round(decimals), 0.01, 0.99), data[1]
    expected = {
        "log_loss": sklearn.log_loss(recalled, p),
        "normalized_entropy": 1 - sklearn.d2_log_loss_score(recalled, p),
        "brier": sklearn.brier_score_loss(recalled, p),
        "brier_skill": sklearn.r2_score(recalled, p),
        "auc": sklearn.roc_auc_score(recalled, p),
        "mbe": p.mean() - recalled.mean(),
    }
    parts = scoring.decompose(recalled * 1.0, p, scoring_function=scoring.LogLoss()).to_dicts()[0]
    for part in ("miscalibration", "discrimination"):
        expected[f"corp_{part}_log"] = parts[part]
    found = {name: of_outcomes(name, p, recalled) for name in expected}
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("decimals", [1, 2, 16])
def test_confusion_is_that_of_scikit_learn_with_intervals_of_statsmodels(data, decimals):
    p, recalled = data[0].round(decimals), data[1]
    for threshold in (0.5, 0.7, 0.8, 0.9, 0.95):
        (row,) = threshold_rows(tally(p, recalled), [threshold])
        ((tn, fp), (fn, tp)) = sklearn.confusion_matrix(recalled, p >= threshold)
        assert [row[name] for name in ("tn", "fp", "fn", "tp")] == [tn, fp, fn, tp]
        of_which = {"tpr": (tp, fn), "fpr": (fp, tn), "ppv": (tp, fp), "npv": (tn, fn)}
        of_which |= {"fnr": (fn, tp), "tnr": (tn, fp), "fdr": (fp, tp), "for": (fn, tn)}
        assert set(of_which) == set(RATES)
        for statistic, (hits, others) in of_which.items():
            assert row[statistic] == pytest.approx(hits / (hits + others))
            interval = row[f"{statistic}_low"], row[f"{statistic}_high"]
            expected = proportion_confint(hits, hits + others, 0.01, "wilson")
            assert interval == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("decimals", [1, 2, 16])
def test_the_calibration_error_in_bins_is_that_of_scikit_learns_curve(data, decimals):
    """Predictions on an edge lie above it here, and below it there: they are moved up a little."""
    p, recalled = np.minimum(data[0].round(decimals) + 1e-9, 1), data[1]
    share, mean = calibration_curve(recalled, p, n_bins=10)
    size = np.bincount(np.minimum((p * 10).astype(int), 9), minlength=10)
    expected = (size[size > 0] * np.abs(share - mean)).sum() / len(p)
    assert ece(p, recalled) == pytest.approx(expected, abs=1e-12)
    assert ece([1.0, 0.95, 0.85, 0.85], [1, 0, 1, 1]) == pytest.approx((0.95 + 0.3) / 4)


def test_the_roc_curve_is_that_of_scikit_learn_thinned_where_it_is_long(data):
    p, recalled = data[0].round(2), data[1]
    fpr, tpr, _ = sklearn.roc_curve(recalled, p, drop_intermediate=False)
    whole, few = (roc_of(tally(p, recalled), thresholds=(0.7, 0.9), points=n) for n in (2001, 21))
    assert (whole.fpr, whole.tpr) == (pytest.approx(fpr), pytest.approx(tpr))
    complete, thinned = ([*zip(each.fpr, each.tpr, strict=True)] for each in (whole, few))
    assert {*thinned} < {*complete}
    assert (len(thinned) <= 21, thinned[0], thinned[-1]) == (True, (0, 0), (1, 1))
    assert np.trapezoid(few.tpr, few.fpr) == pytest.approx(few.auc, abs=0.02)
    expected = [(t, (p[~recalled] >= t).mean(), (p[recalled] >= t).mean()) for t in (0.7, 0.9)]
    for curve in (whole, few):
        assert np.ravel(curve.at) == pytest.approx(np.ravel(expected))
    alike = roc_of(tally([0.95, 0.5], [1, 1]), thresholds=[0.9])
    assert (len(alike.fpr), len(alike.tpr)) == (0, 0)
    assert (alike.auc, *alike.at[0]) == pytest.approx((math.nan, 0.9, math.nan, 0.5), nan_ok=True)


@pytest.mark.parametrize(
    ("n", "decimals", "shape", "alike"),
    [
        *((30, 16, (1, 1), 0), (30, 2, (9, 1.2), 0), (30, 1, (15, 1.5), 0)),
        *((300, 16, (15, 1.5), 0), (300, 2, (1, 1), 0), (3000, 16, (9, 1.2), 0)),
        *((3000, 1, (1, 1), 0), (2 * CELLS, 16, (9, 1.2), 0), (300, 16, (9, 1.2), 200)),
    ],
)
def test_the_distance_from_a_local_regression_is_that_of_statsmodels(n, decimals, shape, alike):
    """Over all reviews, where one prediction is that of most of them."""
    p, recalled = drawn(n, decimals, shape)
    p[:alike] = 0.8
    _, tie, size = np.unique(p, return_inverse=True, return_counts=True)
    shared = (np.bincount(tie, recalled) / size)[tie]  # equal predictions share their outcome
    with warnings.catch_warnings():
        # Where a window has no width it divides by 0, before it takes the mean.
        warnings.simplefilter("ignore")
        options = {"frac": 1 if alike else 2 / 3, "it": 0, "delta": 0.01 * np.ptp(p)}
        fitted = lowess(shared, p, return_sorted=False, **options)
    expected = np.abs(fitted - p).mean()
    tolerance = 1e-5 if n > CELLS else 1e-6
    assert of_outcomes("ici", p, recalled) == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize(
    ("n", "exponent", "shape"),
    [
        *((1, 1, (9, 1.2)), (2, 0.3, (9, 1.2)), (30, 1.0, (9, 1.2)), (1000, 0.3, (9, 1.2))),
        *((20_000, 1.2, (9, 1.2)), (20_000, 0.8, (2, 2)), (20_000, 1.2, (0.5, 0.5))),
        *((400_000, 1.0, (9, 1.2)), (20_000, 1.0, (3000, 1))),
    ],
)
def test_smece_is_that_of_relplot_and_the_exact_one_near_it(n, exponent, shape):
    with warnings.catch_warnings():  # of plotting libraries that use what pandas deprecates
        warnings.simplefilter("ignore")
        from relplot.metrics import smECE
    rng = np.random.default_rng(n)
    p = rng.beta(*shape, n)
    recalled = rng.random(n) < p**exponent
    expected = smECE(p, recalled * 1.0)
    assert smece(p, recalled) == pytest.approx(expected, abs=1e-13)
    if n >= 20_000:
        assert smece_exact(p, recalled) == pytest.approx(expected, abs=3e-4)


CASES = json.loads((Path(__file__).parents[1] / "golden/metric_cases.json").read_text("utf-8"))
# Metrics by the names of golden numbers.
GOLDEN = {"bss": "brier_skill", "ece10": "ece", "smece_relplot": "smece", "mbe": "mbe"}
GOLDEN |= {"rmse_bins_old_log20": "rmse_bins_by_p"}
GOLDEN |= {name: name for name in ("log_loss", "normalized_entropy", "brier", "smece_exact", "auc")}
SMALL = ("C01", "C03", "C06", "C12", "C14a", "C14b", "C21")


def near(expected, tolerance):
    return pytest.approx(float(expected), abs=max(tolerance, 1e-15), rel=0, nan_ok=True)


@pytest.mark.parametrize("case", [*SMALL, pytest.param("C30a", marks=pytest.mark.slow)])
def test_metrics_of_predictions_and_outcomes(weyl, case):
    inputs, expected, tolerances = (CASES[case][part] for part in ("inputs", "expected", "tol"))
    if not isinstance(tolerances, dict):
        tolerances = {"default": tolerances}
    is_drawn = "n" in inputs
    p, recalled = weyl(inputs["n"], inputs["shift"]) if is_drawn else (inputs["p"], inputs["y"])
    names = GOLDEN.keys() & expected.keys()
    assert names
    for name in names:
        tolerance = tolerances.get(name, tolerances["default"])
        assert of_outcomes(GOLDEN[name], p, recalled) == near(expected[name], tolerance), name
    for bin_of, expected_bin in expected.get("log20_index", {}).items():
        assert log_bins([float(bin_of)]).tolist() == [expected_bin]


def test_um_plus_of_two_models(weyl):
    inputs, expected = CASES["C21"]["inputs"], CASES["C21"]["expected"]["um_plus"]
    p, recalled = weyl(inputs["n"], inputs["shift"])
    steps = np.arange(1, len(p) + 1) * 0.7548776662466927 % 1
    other = np.clip(p - 0.1 + 0.2 * steps, 0, 1)
    assert um_plus(p, other, recalled) == near(expected["A"], 1e-12)
    assert um_plus(other, p, recalled) == near(expected["B"], 1e-12)
    assert np.isnan(um_plus(p[:0], p[:0], recalled[:0]))


def test_certain_predictions_are_clipped_and_those_that_are_wrong_are_counted():
    inputs, expected = CASES["C04"]["inputs"], CASES["C04"]["expected"]
    losses = [log_loss(inputs[k]["p"], inputs[k]["y"]) for k in "abc"]
    names = ("right", "wrong", "one_wrong_of_four")
    assert losses == [near(expected[name], 1e-12) for name in names]
    certain_wrong = partial(of_outcomes, "log_loss_certain_wrong")
    wrong = [certain_wrong(inputs[k]["p"], inputs[k]["y"]) for k in "abc"]
    assert wrong == expected["n_certain_wrong"]
    assert brier(inputs["b"]["p"], inputs["b"]["y"]) == expected["brier_wrong"]
    single = np.array(inputs["b"]["p"], np.float32)
    assert log_loss(single, inputs["b"]["y"]) == near(expected["wrong"], 1e-12)
    assert auc([0.5, 0.5], [1, 0]) == 0.5
