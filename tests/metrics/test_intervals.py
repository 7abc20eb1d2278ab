from __future__ import annotations

import math

import numpy as np
import pytest
from pairs import predicted
from scipy import stats

from srs_eval.metrics.cluster_sums import ClusterSums
from srs_eval.metrics.intervals import (
    half_widths,
    intervals_around,
    single_user_intervals,
)
from srs_eval.metrics.panel import Panel, default_panel
from srs_eval.metrics.prediction_cells import PredictionCells
from srs_eval.metrics.proper import Brier, LogLoss
from srs_eval.metrics.score import score
from srs_eval.metrics.tally import tally
from srs_eval.metrics.temporal import Temporal
from srs_eval.metrics.threshold import Confusion
from srs_eval.stats.resample import RESAMPLES, cluster_counts


@pytest.mark.parametrize("clusters", [5, 8, 40])
def test_single_user_intervals_are_students_t_times_the_spread_of_the_resampled_means(clusters):
    rng = np.random.default_rng(clusters)
    card = np.repeat(np.arange(clusters), 12)
    p = rng.uniform(0.5, 0.99, len(card))
    predictions = predicted(p, rng.random(len(p)) < p, card=card, day=None)
    lo, hi = single_user_intervals(Panel([LogLoss()]), predictions)["log_loss"]
    of_cards = LogLoss().per_review(predictions).reshape(clusters, 12).mean(axis=1)
    (drawn,) = cluster_counts(clusters, RESAMPLES, 0)
    spread = (drawn @ of_cards / clusters).std(ddof=1) * math.sqrt(clusters / (clusters - 1))
    half = stats.t.ppf(0.995, clusters - 1) * spread
    assert (hi - of_cards.mean(), of_cards.mean() - lo) == pytest.approx((half, half))


class Slow:
    """The same number, but not known to follow from sums."""

    name, better, section = "slow", "neither", "test"

    def __init__(self, metric):
        self.metric, self.bounds = metric, metric.bounds

    def __call__(self, predictions):
        return self.metric(predictions)


@pytest.mark.parametrize("metric", [Temporal(), Confusion("npv", 0.9), LogLoss()])
def test_curves_ratios_and_means_are_resampled_as_the_metrics_they_are(one_user, metric):
    """Forgetting curves are resampled with their cards."""
    panel = Panel([metric, Slow(metric)])
    both = single_user_intervals(panel, one_user(curves=80), resamples=60)
    assert both[metric.name] == pytest.approx(both["slow"], rel=1e-6)


def test_the_default_panel_has_single_user_intervals(one_user):
    predictions = one_user()
    panel = default_panel()
    scores = panel.score(predictions)
    intervals = single_user_intervals(panel, predictions, resamples=20)
    assert tuple(intervals) == panel.names
    for metric in panel:
        lo, hi = intervals[metric.name]
        if not getattr(metric, "has_interval", True):  # a level that chance alone would give
            assert math.isnan(lo + hi)
            continue
        assert lo <= scores[metric.name] <= hi
        assert metric.bounds[0] <= lo <= hi <= metric.bounds[1]
    again = single_user_intervals(panel, predictions, resamples=20)
    np.testing.assert_equal(intervals, again)


def test_a_million_reviews_are_drawn_less_often(one_user, monkeypatch):
    class Counting:
        """Says how often it was asked."""

        name, better, section = "counting", "neither", "test"
        calls = 0

        def __call__(self, predictions):
            Counting.calls += 1
            return 0.5

    monkeypatch.setattr("srs_eval.metrics.intervals.ROWS_DRAWN", 30_000)
    single_user_intervals(Panel([Counting()]), one_user(n=600))
    assert Counting.calls == 1 + 50
    single_user_intervals(Panel([Counting()]), one_user(n=6000))
    assert Counting.calls == 2 + 50 + 30


class Free:
    """A plug-in without bounds."""

    name, better, section = "free", "neither", "test"

    def __call__(self, predictions):
        return 0.0


def test_intervals_are_centred_at_the_score_and_cut_off_at_the_bounds():
    panel = Panel([Brier(), LogLoss(), Free()])
    scores = {"brier": 0.1, "log_loss": 0.3, "free": -2.0}
    widths = {"brier": 0.2, "log_loss": 0.1, "free": 5.0}
    assert intervals_around(panel, scores, widths) == {
        "brier": (0.0, pytest.approx(0.3)),
        "log_loss": (pytest.approx(0.2), pytest.approx(0.4)),
        "free": (-7.0, 3.0),
    }


def clusters_of(one_user, users, panel, seed=0):
    predictions = one_user(n=40 * users, cards=users, seed=seed)
    return clustered(panel, predictions, np.repeat(np.arange(users), 40), users)


def clustered(panel, predictions, cluster, clusters):
    cells = PredictionCells.for_predictions(tally(predictions.p, predictions.recalled))
    return ClusterSums.of(panel, predictions, cluster, clusters, cells)


def test_four_clusters_have_no_width_and_five_have(one_user):
    panel = Panel([LogLoss()])
    assert math.isnan(half_widths(clusters_of(one_user, 4, panel))["log_loss"])
    assert half_widths(clusters_of(one_user, 5, panel))["log_loss"] > 0


@pytest.mark.parametrize("reviews", [[40] * 8, [5, 10, 20, 40, 80, 160, 320, 640]])
def test_degrees_of_freedom_are_those_of_the_effective_number_of_clusters(reviews):
    rng = np.random.default_rng(4)
    user = np.repeat(np.arange(len(reviews)), reviews)
    p = rng.uniform(0.5, 0.99, len(user))
    recalled = rng.random(len(user)) < p
    widths = {}
    for level in (0.5, 0.99):
        found = score(p, recalled, user=user, panel=Panel([LogLoss()]), level=level)
        low, high = found.intervals["log_loss"]
        widths[level] = high - low
    effective = np.sum(reviews) ** 2 / np.sum(np.square(reviews))
    expected = stats.t.ppf(0.995, effective - 1) / stats.t.ppf(0.75, effective - 1)
    assert widths[0.99] / widths[0.5] == pytest.approx(expected)


def test_where_one_cluster_outweighs_all_others_there_is_no_width():
    user = np.repeat(np.arange(6), [1, 1, 1, 1, 1, 5000])
    found = score(np.full(len(user), 0.9), np.arange(len(user)) % 7 > 0, user=user)
    assert np.isnan(found.intervals["log_loss"]).all()


def test_the_same_seed_draws_the_same_clusters_for_every_model(one_user):
    panel = Panel([LogLoss()])
    alike = [half_widths(clusters_of(one_user, 20, panel), seed=seed) for seed in (3, 3, 4)]
    assert alike[0] == alike[1] != alike[2]
