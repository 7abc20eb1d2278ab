"""Sums of clusters, the users of a run pooled, and intervals from clusters that are resampled."""

import math
from dataclasses import replace

import numpy as np
import pytest
from metric_functions import METRIC, one_user, predicted, scored
from scipy import stats
from scipy.special import expit

from srs_eval.metrics import bootstrap
from srs_eval.metrics.bootstrap import (
    RESAMPLES,
    PooledSums,
    cell_edges,
    cluster_counts,
    cluster_intervals,
    cluster_sums,
    pool,
    tallies,
)
from srs_eval.metrics.panel import Panel, full_panel
from srs_eval.metrics.predictions import concatenate, select
from srs_eval.metrics.score import score
from srs_eval.metrics.tally import Tally, log_losses

PANEL = full_panel()
LOG_LOSS, AUC = METRIC["log_loss"], METRIC["auc"]
# What sums of clusters give to the last digits; the rest depends on cells.
EXACT = {"log_loss", "log_loss_certain_wrong", "normalized_entropy", "brier", "brier_skill"}
EXACT |= {"mbe", "ece", "rmse_bins", "rmse_bins_floor", "rmse_bins_by_p"}
EXACT |= {"temporal_violation", "temporal_strict", "temporal_flat"}
EXACT |= {name for name in PANEL.names if name.startswith(("confusion_", "threshold_bias"))}


def median(predictions):
    """A plug-in that is a function of predictions."""
    return float(np.median(predictions.p))


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_a_resample_is_the_panel_of_the_reviews_that_were_drawn(dtype):
    """Some cards were never reviewed, and some are not drawn."""
    whole = one_user(n=2000)
    whole = replace(whole, p=whole.p.astype(dtype), card=whole.card + 1)
    tally, clusters = Tally.of(whole), 63
    edges = cell_edges(PANEL, whole.p.dtype, tally)
    random = np.random.default_rng(1).integers(0, 4, (2, clusters))
    for counts, predictions in (
        (random, replace(whole, curves=None)),
        (np.ones((1, clusters), int), whole),
    ):
        table = cluster_sums(predictions, edges, predictions.card, clusters)
        drawn = tallies(table, counts.astype(float), edges, whole.p.dtype)
        for row, resample in zip(counts, drawn, strict=True):
            scores = PANEL.score(select(predictions, np.repeat(np.arange(2000), row[whole.card])))
            for name, value in PANEL.of(resample).items():
                near = 1e-12 if name in EXACT else 2e-2
                assert value == pytest.approx(scores[name], rel=near, abs=near, nan_ok=True), name
    nobody = np.eye(clusters)[[0]]
    (empty,) = tallies(table, nobody, edges, whole.p.dtype)
    assert len(empty) == 0


@pytest.fixture(scope="module")
def users():
    sizes = [600, 50, 300, 8, 120, 77]
    made = [one_user(n=n, curves=min(8, n), seed=n) for n in sizes]
    return [replace(user, users=(k,)) for k, user in enumerate(made)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("groups", [10_000, 4], ids=["users", "groups"])
def test_users_are_pooled_to_the_panel_of_all_rows_also_in_groups(
    users, monkeypatch, groups, dtype
):
    """A function of predictions is of single users alone: memory does not grow with reviews."""
    monkeypatch.setattr(bootstrap, "GROUPS", groups)
    users = [replace(user, p=user.p.astype(dtype)) for user in users]
    sums, whole = PooledSums(Panel([*PANEL, median]), users), concatenate(users)
    assert (np.diff(sums.table().indptr) > 0).sum() == min(groups, len(users))  # all have users
    found, scores = pool(sums, resamples=10), PANEL.score(whole)
    for metric in PANEL:
        name, near = metric.name, 1e-12 if metric.name in EXACT else 1e-5
        assert found.scores[name] == pytest.approx(scores[name], rel=near, abs=near), name
        lo, hi = np.clip(found.intervals[name], *metric.bounds)
        assert found.intervals[name] == pytest.approx((lo, hi), nan_ok=True)
    assert np.isfinite(found.intervals["auc"]).all() == (groups == 10_000)
    assert np.isnan([found.scores["median"], *found.intervals["median"]]).all()
    assert [row["threshold"] for row in found.thresholds] == [0.7, 0.8, 0.9, 0.95]
    for row in found.thresholds:
        at = np.array(row["threshold"], dtype)
        assert row["tp"] == ((whole.p >= at) & whole.recalled).sum()
        name = f"confusion_ppv_at_{row['threshold']}".replace(".", "_")
        assert row["ppv"] == found.scores[name]


@pytest.mark.parametrize("reviews", [[12] * 5, [12] * 40, [5, 10, 20, 40, 80, 160, 320, 640]])
def test_intervals_are_students_t_times_the_spread_of_the_resampled_means(reviews):
    """With the degrees of freedom of the effective number of clusters."""
    rng = np.random.default_rng(len(reviews))
    card = np.repeat(np.arange(len(reviews)), reviews)
    p = rng.uniform(0.5, 0.99, len(card))
    predictions = predicted(p, rng.random(len(p)) < p, card=card, day=None)
    losses = log_losses(predictions.p, predictions.recalled)
    (drawn,) = cluster_counts(len(reviews), RESAMPLES, 0)
    means = (drawn @ np.bincount(card, losses)) / (drawn @ np.array(reviews))
    effective = np.sum(reviews) ** 2 / np.sum(np.square(reviews))
    spread = means.std(ddof=1) * math.sqrt(effective / (effective - 1))
    half = stats.t.ppf(0.995, effective - 1) * spread
    lo, hi = cluster_intervals(Panel([LOG_LOSS]), predictions)["log_loss"]
    assert (hi - losses.mean(), losses.mean() - lo) == pytest.approx((half, half))


def width_over(reviews, **options):
    """Compute the width of the interval of the log loss over users of so many reviews."""
    rng = np.random.default_rng(4)
    user = np.repeat(np.arange(len(reviews)), reviews)
    p = rng.uniform(0.5, 0.99, len(user))
    found = score(p, rng.random(len(user)) < p, user=user, panel=Panel([LOG_LOSS]), **options)
    return np.ptp(found.intervals["log_loss"])


def test_few_clusters_or_one_that_outweighs_all_others_or_outcomes_all_alike_have_no_width():
    assert math.isnan(width_over([40] * 4))
    assert width_over([40] * 5) > 0
    assert math.isnan(width_over([1, 1, 1, 1, 1, 5000]))
    assert width_over([40] * 9, seed=3) == width_over([40] * 9, seed=3)
    assert width_over([40] * 9, seed=3) != width_over([40] * 9, seed=4)
    ratio = width_over([40] * 9) / width_over([40] * 9, level=0.5)
    assert ratio == pytest.approx(stats.t.ppf(0.995, 8) / stats.t.ppf(0.75, 8))
    rng = np.random.default_rng(0)
    p, card = rng.uniform(0.5, 0.99, 600), np.arange(600) // 10
    recalled = (np.abs(p - 0.9) < 0.02) | (rng.random(600) < 0.8)
    panel = Panel([LOG_LOSS, METRIC["threshold_bias_at_0_9"]])
    for outcomes, defined in ((recalled, [True, False]), (recalled | True, [False, False])):
        found = cluster_intervals(panel, predicted(p, outcomes, card=card, day=None))
        assert np.isfinite([*found.values()]).all(axis=1).tolist() == defined


@pytest.mark.parametrize("span", [1e-2, 1e-9])
def test_what_depends_on_the_order_has_its_interval_however_close_predictions_are(span):
    """A model may rank reviews although all of its predictions are nearly 0.9."""
    rng, users = np.random.default_rng(0), 40
    user = np.repeat(np.arange(users), 150)
    n = len(user)
    skill = rng.normal(0, 1, users)[user] + rng.normal(0, 1, n)  # alike within users
    p = 0.9 + span * (skill / np.ptp(skill))
    predictions = predicted(p, rng.random(n) < expit(2 + skill / 2), user=user)
    lo, hi = cluster_intervals(Panel([AUC]), predictions, ["user"], resamples=40)["auc"]
    (counts,) = cluster_counts(users, 40, 0)
    rows = [np.repeat(np.arange(n), row.astype(int)[user]) for row in counts]
    drawn = [scored(AUC, select(predictions, each)) for each in rows]
    factor = stats.t.ppf(0.995, users - 1) * math.sqrt(users / (users - 1))
    assert 0 < (hi - lo) / 2 == pytest.approx(factor * np.std(drawn, ddof=1), rel=0.1)


def test_each_resample_draws_as_many_clusters_as_there_are():
    drawn, again = (np.concatenate([*cluster_counts(3_000, 700, 7)]) for _ in range(2))
    assert drawn.shape == (700, 3_000)
    assert (drawn.sum(axis=1) == 3_000).all()
    assert drawn.mean(axis=0) == pytest.approx(np.ones(3_000), abs=6 / np.sqrt(700))
    assert (again == drawn).all()
    assert len(np.unique(drawn, axis=0)) == 700
