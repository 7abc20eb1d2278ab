from __future__ import annotations

import math
import weakref
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from srs_eval.errors import ScoreError
from srs_eval.metrics import pooled as pooled_module
from srs_eval.metrics.discrimination import Auc
from srs_eval.metrics.panel import Panel, default_panel
from srs_eval.metrics.pooled import PooledSums, pool
from srs_eval.metrics.proper import Brier, LogLoss
from srs_eval.metrics.smece import SmeceExact
from srs_eval.nouns import Predictions
from srs_eval.nouns.predictions import concatenate
from srs_eval.stats import resample

PANEL = default_panel()


class Rows:
    """A plug-in that can only be computed from rows."""

    name, better, section = "rows", "neither", "test"

    def __call__(self, predictions):
        return float(np.median(predictions.p))


@pytest.fixture(scope="module")
def users(one_user):
    sizes = [600, 50, 300, 8, 120, 77]
    made = [one_user(n=n, curves=min(8, n), seed=n) for n in sizes]
    return [replace(user, users=(k,)) for k, user in enumerate(made)]


def briefly(users, **options):
    """Pool the whole panel, drawing few resamples."""
    return pool(PANEL, lambda: users, resamples=10, **options)


def test_nobody_scores_as_undefined():
    pooled = pool(PANEL, list)
    assert tuple(pooled.scores) == PANEL.names
    assert all(math.isnan(score) for score in pooled.scores.values())
    assert all(np.isnan(bounds).all() for bounds in pooled.intervals.values())
    assert pooled.thresholds == ()


def test_metrics_of_rows_get_all_rows_together_but_no_interval(users):
    panel = Panel([Rows(), LogLoss()])
    pooled = pool(panel, lambda: users)
    whole: Predictions = concatenate(users)
    assert pooled.scores["rows"] == np.median(whole.p)
    assert np.isnan(pooled.intervals["rows"]).all()


@pytest.mark.parametrize(("metric", "most"), [(LogLoss(), 2), (Rows(), 6)], ids=["sums", "rows"])
def test_rows_are_kept_only_for_metrics_that_need_them(users, metric, most):
    """A user is let go when the next one is made, so that memory does not grow with reviews."""
    made, alive = [], []

    def each():
        for user in users:
            p = user.p.copy()
            made.append(weakref.ref(p))
            alive.append(sum(reference() is not None for reference in made))
            yield replace(user, p=p)
            del p

    pool(Panel([metric]), each)
    assert max(alive) == most


def chunked(users, size, panel=PANEL):
    """Sums of chunks of users, each computed elsewhere."""
    sums = PooledSums(panel)
    for begin in range(0, len(users), size):
        sums.extend(PooledSums(panel, users[begin : begin + size]).arrays())
    return sums


@pytest.mark.parametrize("groups", [10_000, 4], ids=["users", "groups"])
def test_sums_give_equal_bits_with_any_chunk_size(users, monkeypatch, groups):
    for module in (pooled_module, resample):
        monkeypatch.setattr(module, "GROUPS", groups)

    def unread():
        raise AssertionError("the sums are enough")

    found = [pool(PANEL, unread, chunked(users, size), resamples=10) for size in (1, 4)]
    expected = briefly(users)
    assert [repr(each) for each in found] == [repr(expected)] * 2
    assert expected.are_grouped == (groups == 4)
    if groups == 4:
        with pytest.raises(ScoreError):
            PooledSums(PANEL, users).arrays()


@pytest.mark.slow
def test_groups_have_the_scores_and_about_the_intervals_of_users(monkeypatch):
    """400 users in up to 100 groups: the skewness is that of users, for their sums add up."""
    panel = Panel([LogLoss(), Auc()])
    each = as_users(*simulated(np.random.default_rng(0), users=400))
    single = pool(panel, lambda: each, resamples=1000)
    for module in (pooled_module, resample):
        monkeypatch.setattr(module, "GROUPS", 100)
    grouped = pool(panel, lambda: each, resamples=1000)
    assert grouped.scores == pytest.approx(single.scores, rel=1e-12)
    for name in panel.names:
        widths = [np.ptp(found.intervals[name]) for found in (grouped, single)]
        assert widths[0] == pytest.approx(widths[1], rel=0.2)
        assert widths[0] != widths[1]


def test_the_group_of_a_user_depends_on_the_name_alone():
    assert resample.group_of(7) == resample.group_of("7") == 3230
    sizes = np.bincount([resample.group_of(user) for user in range(20_000)], minlength=10_000)
    assert (len(sizes), sizes.max()) == (10_000, pytest.approx(9, abs=3))


def test_thresholds_are_told_of_all_users_together(users):
    pooled = briefly(users)
    whole = concatenate(users)
    assert [row["threshold"] for row in pooled.thresholds] == [0.7, 0.8, 0.9, 0.95]
    for row in pooled.thresholds:
        predicted = whole.p >= row["threshold"]
        assert row["tp"] == (predicted & whole.recalled).sum()
        assert row["tn"] == (~predicted & ~whole.recalled).sum()
        assert row["ppv"] == pooled.scores[f"confusion_ppv_at_{row['threshold']}".replace(".", "_")]


def simulated(rng, users=60, reviews=30):
    """Users whose bias is their own, so that reviews of a user are alike."""
    logit = rng.normal(1.5, 1, (users, reviews))
    p = 1 / (1 + np.exp(-logit))
    shift = rng.normal(0, 0.5, (users, 1))
    return p, rng.random(p.shape) < 1 / (1 + np.exp(-logit - shift))


def as_users(p, recalled):
    zeros = np.zeros(p.shape[1], np.int64)
    each = np.arange(p.shape[1])
    return [
        Predictions((k,), zeros, zeros, each, each, one, outcome)
        for k, (one, outcome) in enumerate(zip(p, recalled, strict=True))
    ]


@pytest.mark.nightly
def test_intervals_hold_the_truth_about_as_often_as_they_say():
    """100 sets of 60 users of a biased model; the truth is taken from 20,000 users."""
    rng = np.random.default_rng(0)
    p, recalled = simulated(rng, users=20_000)
    whole = concatenate(as_users(p.reshape(20, -1) ** 0.5, recalled.reshape(20, -1)))
    metrics = [LogLoss(), Brier(), Auc(), SmeceExact()]
    truth = {metric.name: metric(whole) for metric in metrics}
    held = []
    for _ in range(100):
        p, recalled = simulated(rng)
        intervals = pool(Panel(metrics), partial(as_users, p**0.5, recalled)).intervals
        held.append([lo <= truth[name] <= hi for name, (lo, hi) in intervals.items()])
    assert np.shape(held) == (100, 4)
    assert (np.mean(held, axis=0) >= 0.95).all()
