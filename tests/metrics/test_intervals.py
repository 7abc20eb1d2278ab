from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from pairs import predicted
from scipy import stats

from srs_eval.metrics.cluster_sums import ClusterSums
from srs_eval.metrics.intervals import (
    half_widths,
    intervals_around,
    joint_half_widths,
    single_user_intervals,
)
from srs_eval.metrics.panel import Panel, default_panel
from srs_eval.metrics.prediction_cells import PredictionCells
from srs_eval.metrics.proper import Brier, LogLoss
from srs_eval.metrics.score import score
from srs_eval.metrics.tally import tally
from srs_eval.metrics.temporal import Temporal
from srs_eval.metrics.threshold import Confusion
from srs_eval.stats.estimate import clustered_mean
from srs_eval.stats.resample import RESAMPLES, cluster_counts


def test_single_user_intervals_have_the_width_of_the_cluster_error(one_user):
    predictions = one_user(n=2000, cards=200)
    lo, hi = single_user_intervals(Panel([LogLoss()]), predictions, resamples=400)["log_loss"]
    losses = LogLoss().per_review(predictions)
    sums = np.bincount(predictions.card, losses - losses.mean(), minlength=200)
    error = math.sqrt((sums**2).sum()) / len(losses)
    assert (hi - lo) / 2 == pytest.approx(2.6 * error, rel=0.12)
    assert (hi + lo) / 2 == pytest.approx(losses.mean(), abs=1e-12)


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


def test_forgetting_curves_are_resampled_with_their_cards(one_user):
    class Slow:
        """The same number, but not known to be a mean over curves."""

        name, better, section = "slow", "lower", "time"
        bounds = (0.0, 1.0)

        def __call__(self, predictions):
            return Temporal()(predictions)

    both = single_user_intervals(Panel([Temporal(), Slow()]), one_user(curves=80), resamples=60)
    assert both["temporal_violation"] == pytest.approx(both["slow"], rel=1e-6)


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


def test_undefined_scores_have_no_interval(one_user):
    predictions = one_user(n=60)
    recalled = replace(predictions, recalled=np.ones(60, bool), curves=None)
    intervals = single_user_intervals(default_panel(), recalled, resamples=10)
    assert np.isnan(intervals["auc"]).all()
    assert np.isnan(intervals["temporal_violation"]).all()
    assert np.isfinite(intervals["log_loss"]).all()


def test_reviews_that_are_alike_within_days_widen_the_interval(one_user):
    predictions = one_user(n=2000, cards=200)
    day = np.arange(2000) // 50
    bad_days = (np.random.default_rng(0).random(40) < 0.5)[day]
    alike = replace(predictions, recalled=predictions.recalled & ~bad_days)
    by_card = single_user_intervals(Panel([LogLoss()]), alike)["log_loss"]
    by_both = single_user_intervals(Panel([LogLoss()]), replace(alike, day=day))["log_loss"]
    assert by_both[1] - by_both[0] > 1.5 * (by_card[1] - by_card[0])
    expected = clustered_mean(LogLoss().per_review(alike), alike.card, day)
    assert expected.mean == pytest.approx(sum(by_both) / 2)
    lo, hi = expected.interval()
    assert hi - lo == pytest.approx(by_both[1] - by_both[0], rel=0.3)


def test_confusion_statistics_are_resampled_as_the_ratios_they_are(one_user):
    class Slow:
        """The same number, but not known to be a ratio of sums."""

        name, better, section = "slow", "higher", "threshold"
        bounds = (0.0, 1.0)

        def __call__(self, predictions):
            return Confusion("npv", 0.9)(predictions)

    panel = Panel([Confusion("npv", 0.9), Slow()])
    both = single_user_intervals(panel, one_user(), resamples=50)
    assert both["confusion_npv_at_0_9"] == pytest.approx(both["slow"], rel=1e-6)


def test_the_squares_of_the_widths_by_card_and_by_day_are_added(one_user):
    predictions = replace(one_user(n=600, cards=300), day=np.arange(600) // 100)
    panel = Panel([LogLoss()])
    card, day, both = (
        joint_half_widths(panel, predictions, labels)["log_loss"]
        for labels in (
            [predictions.card],
            [predictions.day],
            [predictions.card, predictions.day],
        )
    )
    assert both == pytest.approx(math.hypot(card, day))


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


def test_a_higher_level_makes_it_wider_by_students_factor(one_user):
    made = clusters_of(one_user, 20, Panel([LogLoss()]))
    wide, narrow = (half_widths(made, level=level)["log_loss"] for level in (0.99, 0.9))
    assert wide / narrow == pytest.approx(stats.t.ppf(0.995, 19) / stats.t.ppf(0.95, 19))


def test_the_same_seed_draws_the_same_clusters_for_every_model(one_user):
    panel = Panel([LogLoss()])
    alike = [half_widths(clusters_of(one_user, 20, panel), seed=seed) for seed in (3, 3, 4)]
    assert alike[0] == alike[1] != alike[2]
