"""What other libraries say, where no test file of a metric has asked them already."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from metric_functions import brier_skill, ece, smece_exact
from pairs import confusion
from sklearn.calibration import calibration_curve
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import (
    brier_score_loss,
    confusion_matrix,
    d2_brier_score,
    precision_score,
    r2_score,
    recall_score,
    roc_auc_score,
)
from sklearn.metrics import log_loss as reference_log_loss

from srs_eval.metrics.corp import corp
from srs_eval.metrics.discrimination import Auc, auc_of
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.pooled import pool
from srs_eval.metrics.proper import Brier, LogLoss
from srs_eval.metrics.score import score
from srs_eval.metrics.sketch import bare_predictions
from srs_eval.metrics.tally import Tally, tally


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    p = rng.beta(9, 1.2, 3000)
    return p, rng.random(3000) < p**1.3


@pytest.mark.parametrize("decimals", [1, 2, 16])
@pytest.mark.parametrize("threshold", [0.5, 0.7, 0.8, 0.9, 0.95])
def test_confusion_is_that_of_scikit_learn(data, decimals, threshold):
    p, recalled = data[0].round(decimals), data[1]
    counts = confusion(p, recalled, threshold)
    ((tn, fp), (fn, tp)) = confusion_matrix(recalled, p >= threshold)
    assert [counts[name] for name in ("tn", "fp", "fn", "tp")] == [tn, fp, fn, tp]
    assert counts["ppv"] == pytest.approx(precision_score(recalled, p >= threshold))
    assert counts["tpr"] == pytest.approx(recall_score(recalled, p >= threshold))


def test_skill_over_the_base_rate_is_that_of_scikit_learn(data):
    p, recalled = data
    assert brier_skill(p, recalled) == pytest.approx(d2_brier_score(recalled, p), abs=1e-12)
    assert brier_skill(p, recalled) == pytest.approx(r2_score(recalled, p), abs=1e-12)


@pytest.mark.parametrize("decimals", [1, 2, 16])
def test_the_calibration_error_in_bins_is_that_of_scikit_learns_curve(data, decimals):
    """Predictions on an edge lie above it here, and below it there: they are moved up a little."""
    p, recalled = np.minimum(data[0].round(decimals) + 1e-9, 1), data[1]
    share, mean = calibration_curve(recalled, p, n_bins=10)
    size = np.bincount(np.minimum((p * 10).astype(int), 9), minlength=10)
    size = size[size > 0]
    expected = (size * np.abs(share - mean)).sum() / len(p)
    assert ece(p, recalled) == pytest.approx(expected, abs=1e-12)


def test_weighted_reviews_count_as_in_scikit_learn(data):
    """A tally of weights, which is what resampling makes."""
    p, recalled = data[0].round(2), data[1]
    weight = np.random.default_rng(1).exponential(1, len(p))
    whole = tally(p, recalled)
    code = np.searchsorted(whole.p, p)
    forgotten, hits = (np.bincount(code, weight * of, len(whole)) for of in (~recalled, recalled))
    weighted = Tally(whole.p, forgotten, hits)
    expected = roc_auc_score(recalled, p, sample_weight=weight)
    assert auc_of(weighted) == pytest.approx(expected, abs=1e-12)
    fitted = IsotonicRegression().fit(p, recalled.astype(float), sample_weight=weight)
    best = brier_score_loss(recalled, fitted.predict(p).clip(0, 1), sample_weight=weight)
    base = np.full(len(p), np.average(recalled, weights=weight))
    rate = brier_score_loss(recalled, base, sample_weight=weight)
    assert corp(weighted).brier.discrimination == pytest.approx(rate - best, abs=1e-10)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shape", [(9, 1.2), (2, 2), (0.5, 0.5)])
def test_the_number_others_print_is_close_to_the_exact_one(shape, seed):
    with warnings.catch_warnings():  # of plotting libraries that use what pandas deprecates
        warnings.simplefilter("ignore")
        from relplot.metrics import smECE
    rng = np.random.default_rng(seed)
    p = rng.beta(*shape, 20_000)
    recalled = rng.random(len(p)) < p ** rng.uniform(0.8, 1.4)
    assert smece_exact(p, recalled) == pytest.approx(smECE(p, recalled * 1.0), abs=3e-4)


def test_users_pooled_score_as_scikit_learn_scores_all_rows(data):
    p, recalled = data
    users = [bare_predictions(p[k::7], recalled[k::7]) for k in range(7)]
    scores = pool(Panel([LogLoss(), Brier(), Auc()]), lambda: users).scores
    assert scores["log_loss"] == pytest.approx(reference_log_loss(recalled, p), abs=1e-12)
    assert scores["brier"] == pytest.approx(brier_score_loss(recalled, p), abs=1e-12)
    assert scores["auc"] == pytest.approx(roc_auc_score(recalled, p), abs=1e-6)


@pytest.mark.slow
def test_intervals_are_about_as_wide_as_those_from_resampling_rows(data):
    """Of users, by scipy's bootstrap of the area under the curve itself."""
    from scipy import stats

    p, recalled = data
    user = np.arange(3000) // 50

    def area(chosen):
        rows = (np.asarray(chosen)[:, None] * 50 + np.arange(50)).ravel()
        return roc_auc_score(recalled[rows], p[rows])

    reference = stats.bootstrap(
        (np.arange(60),), area, n_resamples=120, vectorized=False, method="basic", rng=1
    )
    interval = score(p, recalled, user=user, panel=Panel([Auc()])).intervals["auc"]
    factor = stats.t.ppf(0.995, 59)
    assert np.ptp(interval) / 2 == pytest.approx(factor * reference.standard_error, rel=0.2)
