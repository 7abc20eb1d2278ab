"""Sums of clusters, the users of a run pooled, and intervals from clusters that are resampled."""

import math
from dataclasses import replace

import numpy as np
import pytest
from metric_functions import METRIC, scored
from pairs import predicted
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
    intervals_around,
    pool,
    tallies,
)
from srs_eval.metrics.panel import Panel, default_panel
from srs_eval.metrics.predictions import concatenate, select
from srs_eval.metrics.score import score
from srs_eval.metrics.tally import Tally, log_losses

PANEL = default_panel()
LOG_LOSS, BRIER, AUC = (METRIC[name] for name in ("log_loss", "brier", "auc"))
EXACT = {"log_loss", "brier", "mbe", "ece", "rmse_bins", "rmse_bins_by_p", "confusion_ppv_at_0_9"}


def drawn_by(weights, predictions, clusters=60):
    """Tallies of cards that are drawn so often."""
    edges = cell_edges(PANEL, np.dtype(float), Tally.of(predictions))
    table = cluster_sums(predictions, edges, predictions.card, clusters)
    return list(tallies(table, np.asarray(weights, float), edges, np.dtype(float)))


def rows(predictions):
    """A plug-in that is a function of rows."""
    return float(np.median(predictions.p))


def test_a_resample_is_the_panel_of_the_reviews_that_were_drawn(one_user):
    """In coarse cells: close enough for a spread. Each cluster once is the panel."""
    whole = one_user(n=2000)
    random = np.random.default_rng(1).integers(0, 4, (2, 60))
    for counts, predictions in ((random, replace(whole, curves=None)), (np.ones((1, 60)), whole)):
        for row, drawn in zip(counts, drawn_by(counts, predictions), strict=True):
            rows = np.repeat(np.arange(2000), row[predictions.card].astype(int))
            scores = PANEL.score(select(predictions, rows))
            for name, value in PANEL.of(drawn).items():
                near = 1e-12 if name in EXACT else 1e-2
                assert value == pytest.approx(scores[name], rel=near, abs=near, nan_ok=True)


@pytest.fixture(scope="module")
def users(one_user):
    sizes = [600, 50, 300, 8, 120, 77]
    made = [one_user(n=n, curves=min(8, n), seed=n) for n in sizes]
    return [replace(user, users=(k,)) for k, user in enumerate(made)]


def test_a_resample_without_reviews_is_empty(one_user):
    predictions = one_user(n=300, cards=10)
    (drawn,) = drawn_by([[*[0] * 10, 1, 1]], predictions, 12)
    assert len(drawn) == 0


def test_metrics_of_rows_are_of_single_users_alone(users):
    """So that memory does not grow with reviews."""
    panel = Panel([rows, LOG_LOSS])
    pooled = pool(PooledSums(panel, users))
    assert math.isnan(pooled.scores["rows"])
    assert np.isnan(pooled.intervals["rows"]).all()
    assert np.isfinite(pooled.intervals["log_loss"]).all()
    assert panel.score(users[0])["rows"] == np.median(users[0].p)
    assert np.isnan(cluster_intervals(panel, users[0])["rows"]).all()


@pytest.mark.parametrize("groups", [10_000, 4], ids=["users", "groups"])
def test_users_are_pooled_to_the_panel_of_all_rows_also_in_groups(users, monkeypatch, groups):
    monkeypatch.setattr(bootstrap, "GROUPS", groups)
    sums = PooledSums(PANEL, users)
    assert (np.diff(sums.table().indptr) > 0).sum() == min(groups, len(users))  # all have users
    found = pool(sums, resamples=10)
    whole = concatenate(users)
    scores = PANEL.score(whole)
    for name in EXACT | {name for name in scores if "temporal" in name}:
        assert found.scores[name] == pytest.approx(scores[name], abs=1e-12)
    assert np.isfinite(found.intervals["auc"]).all() == (groups == 10_000)
    assert [row["threshold"] for row in found.thresholds] == [0.7, 0.8, 0.9, 0.95]
    for row in found.thresholds:
        assert row["tp"] == ((whole.p >= row["threshold"]) & whole.recalled).sum()
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


def test_intervals_are_centred_at_the_score_and_cut_off_at_the_bounds():
    panel = Panel([BRIER, LOG_LOSS, rows])
    scores = {"brier": 0.1, "log_loss": 0.3, "rows": -2.0}
    widths = {"brier": 0.2, "log_loss": 0.1, "rows": 5.0}
    assert intervals_around(panel, scores, widths) == {
        "brier": (0.0, pytest.approx(0.3)),
        "log_loss": (pytest.approx(0.2), pytest.approx(0.4)),
        "rows": (-7.0, 3.0),
    }


def width_over(reviews, **options):
    """Compute the width of the interval of the log loss over users of so many reviews."""
    rng = np.random.default_rng(4)
    user = np.repeat(np.arange(len(reviews)), reviews)
    p = rng.uniform(0.5, 0.99, len(user))
    found = score(p, rng.random(len(user)) < p, user=user, panel=Panel([LOG_LOSS]), **options)
    return np.ptp(found.intervals["log_loss"])


def test_few_clusters_or_one_that_outweighs_all_others_have_no_width():
    assert math.isnan(width_over([40] * 4))
    assert width_over([40] * 5) > 0
    assert math.isnan(width_over([1, 1, 1, 1, 1, 5000]))
    assert width_over([40] * 9, seed=3) == width_over([40] * 9, seed=3)
    assert width_over([40] * 9, seed=3) != width_over([40] * 9, seed=4)
    ratio = width_over([40] * 9) / width_over([40] * 9, level=0.5)
    assert ratio == pytest.approx(stats.t.ppf(0.995, 8) / stats.t.ppf(0.75, 8))


def test_outcomes_that_are_all_alike_have_no_width():
    rng = np.random.default_rng(0)
    p, card = rng.uniform(0.5, 0.99, 600), np.arange(600) // 10
    recalled = (np.abs(p - 0.9) < 0.02) | (rng.random(600) < 0.8)
    bias = METRIC["threshold_bias_at_0_9"]
    for outcomes, defined in ((recalled, [True, False]), (recalled | True, [False, False])):
        given = predicted(p, outcomes, card=card, day=None)
        found = cluster_intervals(Panel([LOG_LOSS, bias]), given)
        assert list(found) == ["log_loss", bias.name]
        assert np.isfinite([*found.values()]).all(axis=1).tolist() == defined


USERS, REVIEWS = 40, 150
USER = np.repeat(np.arange(USERS), REVIEWS)
N = len(USER)


@pytest.mark.parametrize("span", [1e-2, 1e-5, 1e-9])
def test_what_depends_on_the_order_has_its_interval_however_close_predictions_are(span):
    """A model may rank reviews although all of its predictions are nearly 0.9."""
    rng = np.random.default_rng(0)
    known = rng.normal(0, 1, USERS)[USER] + rng.normal(0, 1, N)  # alike within users
    recalled = rng.random(N) < expit(2 + known / 2)
    p = 0.9 + span * (known / np.ptp(known))
    predictions = predicted(p, recalled, user=USER)
    lo, hi = cluster_intervals(Panel([AUC]), predictions, ["user"], resamples=40)["auc"]
    half = (hi - lo) / 2
    drawn = [
        scored(AUC, select(predictions, np.repeat(np.arange(N), counts.astype(int)[USER])))
        for block in cluster_counts(USERS, 40, 0)
        for counts in block
    ]
    factor = stats.t.ppf(0.995, USERS - 1) * math.sqrt(USERS / (USERS - 1))
    assert 0 < half == pytest.approx(factor * np.std(drawn, ddof=1), rel=0.1)
    if span >= 1e-3:
        users = [select(predictions, user == USER) for user in range(USERS)]
        score = pool(PooledSums(Panel([AUC]), users), resamples=1).scores["auc"]
        assert score == pytest.approx(scored(AUC, predictions), abs=1e-3)
