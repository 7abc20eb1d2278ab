"""Intervals from resampled clusters: how they are computed, and what they hold."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from pairs import predicted
from scipy import stats
from scipy.special import expit

from srs_eval.metrics import pooled as pooled_module
from srs_eval.metrics.corp import CorpPart
from srs_eval.metrics.discrimination import Auc
from srs_eval.metrics.intervals import (
    intervals_around,
    joint_half_widths,
    single_user_intervals,
)
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.pooled import pool
from srs_eval.metrics.proper import Brier, LogLoss
from srs_eval.metrics.score import score
from srs_eval.metrics.sketch import bare_predictions
from srs_eval.metrics.slope import CalibrationSlope
from srs_eval.metrics.smece import SmeceExact
from srs_eval.metrics.temporal import Temporal
from srs_eval.metrics.threshold import Confusion
from srs_eval.nouns.predictions import select
from srs_eval.stats import resample
from srs_eval.stats.resample import RESAMPLES, cluster_counts


@pytest.mark.parametrize("reviews", [[12] * 5, [12] * 40, [5, 10, 20, 40, 80, 160, 320, 640]])
def test_intervals_are_students_t_times_the_spread_of_the_resampled_means(reviews):
    """With the degrees of freedom of the effective number of clusters."""
    rng = np.random.default_rng(len(reviews))
    card = np.repeat(np.arange(len(reviews)), reviews)
    p = rng.uniform(0.5, 0.99, len(card))
    predictions = predicted(p, rng.random(len(p)) < p, card=card, day=None)
    losses = LogLoss().per_review(predictions)
    (drawn,) = cluster_counts(len(reviews), RESAMPLES, 0)
    means = (drawn @ np.bincount(card, losses)) / (drawn @ np.array(reviews))
    effective = np.sum(reviews) ** 2 / np.sum(np.square(reviews))
    spread = means.std(ddof=1) * math.sqrt(effective / (effective - 1))
    half = stats.t.ppf(0.995, effective - 1) * spread
    lo, hi = single_user_intervals(Panel([LogLoss()]), predictions)["log_loss"]
    assert (hi - losses.mean(), losses.mean() - lo) == pytest.approx((half, half))


class Slow:
    """The same number, but not known to follow from sums; it counts how often it is asked."""

    name, better, section = "slow", "neither", "test"

    def __init__(self, metric):
        self.metric, self.bounds, self.calls = metric, metric.bounds, 0

    def __call__(self, predictions):
        self.calls += 1
        return self.metric(predictions)


@pytest.mark.parametrize("metric", [Temporal(), Confusion("npv", 0.9), LogLoss()])
def test_curves_ratios_and_means_are_resampled_as_the_metrics_they_are(one_user, metric):
    """Forgetting curves are resampled with their cards."""
    panel = Panel([metric, Slow(metric)])
    both = single_user_intervals(panel, one_user(curves=80), resamples=60)
    assert both[metric.name] == pytest.approx(both["slow"], rel=1e-6)


def test_metrics_of_many_rows_are_drawn_less_often(one_user, monkeypatch):
    monkeypatch.setattr("srs_eval.metrics.intervals.ROWS_DRAWN", 30_000)
    for n, expected in ((600, 50), (6000, 30)):
        metric = Slow(LogLoss())
        single_user_intervals(Panel([metric]), one_user(n=n))
        assert metric.calls == 1 + expected


def test_intervals_are_centred_at_the_score_and_cut_off_at_the_bounds():
    free = Slow(LogLoss())
    del free.bounds  # a plug-in without them
    panel = Panel([Brier(), LogLoss(), free])
    scores = {"brier": 0.1, "log_loss": 0.3, "slow": -2.0}
    widths = {"brier": 0.2, "log_loss": 0.1, "slow": 5.0}
    assert intervals_around(panel, scores, widths) == {
        "brier": (0.0, pytest.approx(0.3)),
        "log_loss": (pytest.approx(0.2), pytest.approx(0.4)),
        "slow": (-7.0, 3.0),
    }
    assert np.isnan(intervals_around(panel, scores, {})["brier"]).all()


def width_over(reviews, **options):
    """Compute the width of the interval of the log loss over users of so many reviews."""
    rng = np.random.default_rng(4)
    user = np.repeat(np.arange(len(reviews)), reviews)
    p = rng.uniform(0.5, 0.99, len(user))
    found = score(p, rng.random(len(user)) < p, user=user, panel=Panel([LogLoss()]), **options)
    return np.ptp(found.intervals["log_loss"])


def test_few_clusters_or_one_that_outweighs_all_others_have_no_width():
    assert math.isnan(width_over([40] * 4))
    assert width_over([40] * 5) > 0
    assert math.isnan(width_over([1, 1, 1, 1, 1, 5000]))
    assert width_over([40] * 9, seed=3) == width_over([40] * 9, seed=3)
    assert width_over([40] * 9, seed=3) != width_over([40] * 9, seed=4)
    ratio = width_over([40] * 9) / width_over([40] * 9, level=0.5)
    assert ratio == pytest.approx(stats.t.ppf(0.995, 8) / stats.t.ppf(0.75, 8))


USERS, REVIEWS = 40, 150
USER = np.repeat(np.arange(USERS), REVIEWS)
N = len(USER)


def half_widths(metric, predictions):
    """Half the width, and that of a metric recomputed on the rows of whole users."""
    options = {"resamples": 40}
    quick = joint_half_widths(Panel([metric]), predictions, [USER], **options)[metric.name]
    drawn = [
        metric(select(predictions, np.repeat(np.arange(N), counts.astype(int)[USER])))
        for block in cluster_counts(USERS, 40, 0)
        for counts in block
    ]
    factor = stats.t.ppf(0.995, USERS - 1) * math.sqrt(USERS / (USERS - 1))
    return quick, factor * np.std(drawn, ddof=1)


def pooled(metrics, predictions):
    users = [select(predictions, user == USER) for user in range(USERS)]
    return pool(Panel(metrics), lambda: users, resamples=1).scores


@pytest.mark.parametrize("span", [1e-2, 1e-5, 1e-9])
@pytest.mark.parametrize(
    "metric", [Auc(), CorpPart("discrimination", "log")], ids=lambda metric: metric.name
)
def test_what_depends_on_the_order_has_its_interval_however_close_predictions_are(metric, span):
    """A model may rank reviews although all of its predictions are nearly 0.9."""
    rng = np.random.default_rng(0)
    known = rng.normal(0, 1, USERS)[USER] + rng.normal(0, 1, N)  # alike within users
    recalled = rng.random(N) < expit(2 + known / 2)
    predictions = bare_predictions(0.9 + span * (known / np.ptp(known)), recalled)
    half, exact = half_widths(metric, predictions)
    assert half > 0
    assert half == pytest.approx(exact, rel=0.1)
    if span >= 1e-3:
        score = pooled([metric], predictions)[metric.name]
        assert score == pytest.approx(metric(predictions), abs=1e-3)


@pytest.mark.parametrize("part", ["miscalibration", "discrimination"])
def test_certain_predictions_have_the_score_and_width_of_resampled_reviews(part):
    """One certain lapse costs as much as a hundred others: cells must not average that away."""
    rng = np.random.default_rng(0)
    p = 1 - 10 ** rng.uniform(-12, -0.3, N)
    tails = bare_predictions(p, rng.random(N) > 0.01)
    for metric in (CorpPart(part, "log"), LogLoss() if part == "discrimination" else Auc()):
        half, exact = half_widths(metric, tails)
        assert half == pytest.approx(exact, rel=0.1)
    metrics = [LogLoss(), Brier(), Auc(), SmeceExact(), CalibrationSlope(), CorpPart(part, "log")]
    scores = pooled(metrics, tails)
    for metric in metrics:
        assert scores[metric.name] == pytest.approx(metric(tails), abs=1e-5)


def biased_users(rng, users=60, reviews=30, power=1.0):
    """Users whose bias is their own, so that reviews of a user are alike."""
    logits = rng.normal(1.5, 1, (users, reviews))
    recalled = rng.random(logits.shape) < expit(logits + rng.normal(0, 0.5, (users, 1)))
    each = zip(expit(logits) ** power, recalled, strict=True)
    return [replace(bare_predictions(*one), users=(k,)) for k, one in enumerate(each)]


@pytest.mark.slow
def test_groups_have_the_scores_and_about_the_intervals_of_users(monkeypatch):
    """400 users in up to 100 groups: the skewness is that of users, for their sums add up."""
    panel = Panel([LogLoss(), Auc()])
    each = biased_users(np.random.default_rng(0), users=400)
    single = pool(panel, lambda: each, resamples=1000)
    for module in (pooled_module, resample):
        monkeypatch.setattr(module, "GROUPS", 100)
    grouped = pool(panel, lambda: each, resamples=1000)
    assert grouped.scores == pytest.approx(single.scores, rel=1e-12)
    for name in panel.names:
        widths = [np.ptp(found.intervals[name]) for found in (grouped, single)]
        assert widths[0] == pytest.approx(widths[1], rel=0.2)
        assert widths[0] != widths[1]


@pytest.mark.nightly
def test_intervals_hold_the_truth_about_as_often_as_they_say():
    """100 sets of 60 users of a biased model; the truth is taken from 20,000 users."""
    rng = np.random.default_rng(0)
    users = biased_users(rng, users=20_000, power=0.5)
    columns = zip(*((user.p, user.recalled) for user in users), strict=True)
    whole = bare_predictions(*map(np.concatenate, columns))
    metrics = [LogLoss(), Brier(), Auc(), SmeceExact()]
    truth = {metric.name: metric(whole) for metric in metrics}
    held = []
    for _ in range(100):
        intervals = pool(Panel(metrics), partial(biased_users, rng, power=0.5)).intervals
        held.append([lo <= truth[name] <= hi for name, (lo, hi) in intervals.items()])
    assert np.shape(held) == (100, 4)
    assert (np.mean(held, axis=0) >= 0.95).all()
