"""What intervals hold and what they do not, compared with resampling the reviews themselves."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from srs_eval.metrics.bins import RmseBins, RmseBinsByP
from srs_eval.metrics.calibration import Ece
from srs_eval.metrics.corp import CorpPart
from srs_eval.metrics.discrimination import Auc
from srs_eval.metrics.intervals import joint_half_widths
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.pooled import pool
from srs_eval.metrics.proper import Brier, LogLoss
from srs_eval.metrics.sketch import bare_predictions
from srs_eval.metrics.slope import CalibrationSlope
from srs_eval.metrics.smece import SmeceExact
from srs_eval.nouns.predictions import select
from srs_eval.stats.resample import cluster_counts

USERS, REVIEWS, RESAMPLES = 40, 150, 40
USER = np.repeat(np.arange(USERS), REVIEWS)
N = len(USER)


def exact_half_width(metric, predictions):
    """Recompute a metric on the rows of whole users, drawn as `joint_half_widths` draws them."""
    drawn = [
        metric(select(predictions, np.repeat(np.arange(N), counts.astype(int)[USER])))
        for block in cluster_counts(USERS, RESAMPLES, 0)
        for counts in block
    ]
    factor = stats.t.ppf(0.995, USERS - 1) * math.sqrt(USERS / (USERS - 1))
    return factor * np.std(drawn, ddof=1)


def half_width(metric, predictions):
    return joint_half_widths(Panel([metric]), predictions, [USER], resamples=RESAMPLES)[metric.name]


def pooled(metrics, predictions):
    users = [select(predictions, user == USER) for user in range(USERS)]
    return pool(Panel(metrics), lambda: users, resamples=1).scores


@pytest.fixture(scope="module")
def tails():
    """Certain predictions, of which one in a hundred is wrong all the same."""
    rng = np.random.default_rng(0)
    p = 1 - 10 ** rng.uniform(-12, -0.3, N)
    return bare_predictions(p, rng.random(N) > 0.01)


@pytest.fixture(scope="module")
def ability():
    """How well each review is known, which is alike within users; and its outcome."""
    rng = np.random.default_rng(0)
    known = rng.normal(0, 1, USERS)[USER] + rng.normal(0, 1, N)
    return known, rng.random(N) < expit(2 + known / 2)


@pytest.mark.parametrize("span", [1e-2, 1e-5, 1e-7, 1e-9])
@pytest.mark.parametrize(
    "metric", [Auc(), CorpPart("discrimination", "log")], ids=lambda metric: metric.name
)
def test_what_depends_on_the_order_has_its_interval_however_close_predictions_are(
    ability, metric, span
):
    """A model may rank reviews although all of its predictions are nearly 0.9."""
    known, recalled = ability
    predictions = bare_predictions(0.9 + span * (known / np.ptp(known)), recalled)
    half = half_width(metric, predictions)
    assert half > 0
    assert half == pytest.approx(exact_half_width(metric, predictions), rel=0.1)


@pytest.mark.parametrize(
    "metric",
    [
        CorpPart("miscalibration", "log"),
        CorpPart("discrimination", "log"),
        LogLoss(),
        Auc(),
        CalibrationSlope(),
    ],
    ids=lambda metric: metric.name,
)
def test_certain_predictions_have_the_width_of_resampled_reviews(tails, metric):
    """One certain lapse costs as much as a hundred others: cells must not average that away."""
    exact = exact_half_width(metric, tails)
    assert half_width(metric, tails) == pytest.approx(exact, rel=0.1)


def test_certain_predictions_pool_to_the_score_of_all_rows(tails):
    names = ("miscalibration", "discrimination", "uncertainty")
    parts = [CorpPart(part, score) for part in names for score in ("log", "brier")]
    metrics = [LogLoss(), Brier(), Auc(), SmeceExact(), Ece(), CalibrationSlope(), *parts]
    scores = pooled(metrics, tails)
    for metric in metrics:
        assert scores[metric.name] == pytest.approx(metric(tails), abs=1e-5)


@pytest.mark.parametrize("span", [1e-2, 1e-3])
def test_pooled_predictions_in_a_narrow_range_keep_their_order(ability, span):
    known, recalled = ability
    predictions = bare_predictions(0.9 + span * (known / np.ptp(known)), recalled)
    assert pooled([Auc()], predictions)["auc"] == pytest.approx(Auc()(predictions), abs=1e-3)


PARTS = [CorpPart("miscalibration", score) for score in ("log", "brier")]
ABOVE_0 = [SmeceExact(), RmseBins(), *PARTS]
# Errors in ten or twenty bins are that uncertain that 0 is sometimes just inside.
CALIBRATED = [*ABOVE_0, RmseBinsByP(), Ece()]


def calibrated(rng):
    """A set of reviews as its model says: nothing is wrong but by chance."""
    p = expit(rng.normal(1.5, 1, N))
    facts = {"elapsed_days": (1, 40), "nth_review": (2, 12), "lapses": (0, 3)}
    columns = {name: rng.integers(*limits, N) for name, limits in facts.items()}
    return replace(bare_predictions(p, rng.random(N) < p), **columns)


@pytest.fixture(scope="module")
def intervals():
    """Intervals of six sets, and the mean scores of fifty others."""
    rng = np.random.default_rng(1)
    panel = Panel(CALIBRATED)
    scores = [panel.score(calibrated(rng)) for _ in range(50)]
    level = {name: float(np.mean([each[name] for each in scores])) for name in panel.names}
    found = []
    for _ in range(6):
        predictions = calibrated(rng)
        widths = joint_half_widths(panel, predictions, [USER], resamples=100)
        score = panel.score(predictions)
        found.append({name: (score[name], widths[name]) for name in panel.names})
    return level, found


@pytest.mark.slow
@pytest.mark.parametrize("metric", CALIBRATED, ids=lambda metric: metric.name)
def test_the_interval_of_a_calibrated_models_error_holds_what_chance_gives(intervals, metric):
    """The floor to compare with is the mean error of calibrated models of so many reviews."""
    level, found = intervals
    for score, half in (each[metric.name] for each in found):
        assert score - half < level[metric.name] < score + half


@pytest.mark.slow
@pytest.mark.parametrize("metric", ABOVE_0, ids=lambda metric: metric.name)
def test_the_interval_of_a_calibrated_models_error_does_not_hold_0(intervals, metric):
    """Resampling tells how much an error varies, not how far above 0 chance alone puts it."""
    _, found = intervals
    for score, half in (each[metric.name] for each in found):
        assert score - half > 0
