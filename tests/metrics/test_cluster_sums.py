from __future__ import annotations

import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srs_eval.metrics import sums as sums_module
from srs_eval.metrics.bins import RmseBins
from srs_eval.metrics.cluster_sums import ClusterSums, merged_scores
from srs_eval.metrics.discrimination import Auc
from srs_eval.metrics.panel import Panel, default_panel
from srs_eval.metrics.prediction_cells import PredictionCells
from srs_eval.metrics.proper import Brier, LogLoss
from srs_eval.metrics.smece import SmeceExact
from srs_eval.metrics.tally import tally
from srs_eval.metrics.threshold import ThresholdBias
from srs_eval.nouns.predictions import concatenate, select
from srs_eval.stats.resample import cluster_counts

PANEL = default_panel()
EXACT = {"log_loss", "brier", "mbe", "ece", "rmse_bins", "rmse_bins_by_p", "confusion_ppv_at_0_9"}


def clustered(panel, predictions, cluster, clusters, cells=None, **options):
    cells = cells or cells_for(predictions)
    return ClusterSums.of(panel, predictions, cluster, clusters, cells, **options)


def cells_for(predictions):
    return PredictionCells.for_predictions(tally(predictions.p, predictions.recalled))


def assert_alike(table, other):
    """Compare sparse tables."""
    assert table.shape == other.shape
    assert abs(table - other).max() < 1e-12


class Mean:
    """A plug-in that is a mean over reviews, and says so by having `per_review`."""

    name, better, section = "mean", "neither", "test"

    def per_review(self, predictions):
        return predictions.p

    def __call__(self, predictions):
        return float(predictions.p.mean())


class Rows:
    """A plug-in that says nothing."""

    name, better, section = "rows", "neither", "test"

    def __call__(self, predictions):
        return 0.5


@settings(max_examples=10, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    clusters=st.integers(1, 12),
    chunk=st.sampled_from([7, 2**14]),
    block=st.sampled_from([1, 2, 500]),
)
def test_clusters_in_any_order_hold_their_reviews(one_user, seed, clusters, chunk, block):
    """Some clusters are empty, and the last ones; their sums are those of their reviews alone."""
    predictions = one_user(n=90, curves=8)
    cluster = np.random.default_rng(seed).integers(0, clusters, 90)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sums_module, "CHUNK", chunk)
        made = clustered(PANEL, predictions, cluster, clusters + 2, block=block)
    assert made.table.shape[0] == len(made) == clusters + 2
    for number in range(clusters + 2):
        rows = cluster == number
        curves = predictions.curves
        kept = np.isin(curves.row, predictions.row[rows])
        taken = {
            name: getattr(curves, name)[kept] for name in ("user", "fold", "row", "elapsed", "p")
        }
        alone = select(predictions, rows)
        alone = replace(alone, curves=replace(curves, weight=curves.weight[kept], **taken))
        one = clustered(PANEL, alone, np.zeros(rows.sum(), np.int64), 1, made.cells)
        assert one.curves[0] == pytest.approx(made.curves[number])
        assert_alike(made.table[[number]], one.table)


def test_stacked_clusters_are_as_if_they_had_been_added_up_together(one_user):
    users = [one_user(n=n, curves=5, seed=n) for n in (300, 40, 7)]
    cells = cells_for(concatenate(users))
    parts = [clustered(PANEL, user, np.zeros(len(user), int), 1, cells) for user in users]
    both = ClusterSums.stacked(parts)
    assert len(both) == 3
    whole = concatenate([replace(user, curves=None) for user in users])
    cluster = np.repeat([0, 1, 2], [300, 40, 7])
    assert_alike(both.table, clustered(PANEL, whole, cluster, 3, cells).table)
    assert both.curves.tolist() == np.concatenate([part.curves for part in parts]).tolist()
    _, curves = both.together()
    assert curves == pytest.approx(sum(part.curves[0] for part in parts))


@pytest.mark.slow
def test_many_users_of_few_reviews_take_little_memory(one_user):
    """A table of all cells of all users would be 20,000 x 2,626 numbers: 420 megabytes."""
    predictions = one_user(n=100_000)
    panel = Panel([LogLoss(), Auc(), RmseBins(), SmeceExact(), ThresholdBias(0.9)])
    cells = cells_for(predictions)
    tracemalloc.start()
    made = ClusterSums.of(panel, predictions, np.repeat(np.arange(20_000), 5), 20_000, cells)
    scores = list(made.resampled(cluster_counts(20_000, 10, 0)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200e6
    assert all(math.isfinite(score) for each in scores for score in each.values())


def test_a_resample_with_every_cluster_once_is_the_panel(one_user):
    """In single precision, and in coarse cells: close enough for a spread."""
    predictions = one_user(n=3000)
    made = clustered(PANEL, predictions, predictions.card, 60)
    (drawn,) = made.resampled([np.ones((1, 60))])
    scores = PANEL.score(predictions)
    assert set(drawn) == {m.name for m in PANEL if getattr(m, "has_interval", True)}
    for name, score in drawn.items():
        tolerance = 1e-5 if name in EXACT else 5e-3
        assert score == pytest.approx(scores[name], rel=tolerance, abs=tolerance)


@pytest.mark.parametrize("dense", [0.0, 1.0])
def test_a_resample_is_the_panel_of_the_reviews_that_were_drawn(one_user, monkeypatch, dense):
    monkeypatch.setattr("srs_eval.metrics.cluster_sums.DENSE", dense)
    predictions = replace(one_user(n=2000), curves=None)
    counts = np.random.default_rng(1).integers(0, 4, (3, 60))
    made = clustered(PANEL, predictions, predictions.card, 60)
    for row, drawn in zip(counts, made.resampled([counts.astype(float)]), strict=True):
        rows = np.repeat(np.arange(2000), row[predictions.card])
        scores = PANEL.score(select(predictions, rows))
        for name, score in drawn.items():
            tolerance = 1e-5 if name in EXACT else 1e-2
            assert score == pytest.approx(scores[name], rel=tolerance, abs=tolerance, nan_ok=True)


def test_every_metric_of_the_panel_survives_a_resample_without_any_review(one_user):
    predictions = one_user(n=100)
    made = clustered(PANEL, predictions, np.ones(100, np.int64), 2)
    scores = next(made.resampled([np.array([[2.0, 0.0]])]))
    counts = {"log_loss_clipped", "log_loss_certain_wrong"}
    assert all(math.isnan(score) for name, score in scores.items() if name not in counts)


def test_metrics_of_plug_ins_that_are_means_are_merged(one_user):
    predictions = one_user(n=100)
    panel = Panel([Brier(), Mean(), Rows()])
    made = clustered(panel, predictions, predictions.card % 3, 3)
    sketch, curves = made.together()
    scores = merged_scores(panel, sketch, curves)
    assert scores == pytest.approx({"brier": Brier()(predictions), "mean": predictions.p.mean()})
