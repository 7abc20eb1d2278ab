"""Predictions counted and joined in cells, users pooled, clusters resampled: for every metric."""

import math
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from metric_functions import METRIC, one_user, predicted, scored
from scipy import stats
from scipy.special import expit

from srs_eval.metrics import bootstrap
from srs_eval.metrics.bootstrap import (
    RESAMPLES,
    FineCounts,
    PooledSums,
    cell_edges,
    cluster_counts,
    cluster_intervals,
    cluster_sums,
    fine_counts,
    pool,
    tallies,
)
from srs_eval.metrics.panel import Panel, full_panel
from srs_eval.metrics.predictions import Curves, concatenate, select
from srs_eval.metrics.score import score
from srs_eval.metrics.tally import Tally, from_sums, log_losses, tally
from srs_eval.metrics.temporal import reviews_of_curves, sample_elapsed, temporal_rates
from srs_eval.metrics.threshold import DEFAULT_THRESHOLDS, NEARBY, threshold_rows

probabilities = st.one_of(
    st.floats(0, 1), st.sampled_from([0.0, -0.0, 1.0, 0.5, 0.9]), st.floats(0, 1e-300)
)
reviews = st.lists(st.tuples(probabilities, st.booleans()), min_size=1, max_size=60)


@settings(max_examples=40, deadline=None)
@given(reviews, st.sampled_from(["float16", "float32", "float64"]), st.integers(1, 9))
def test_predictions_are_counted_in_order_and_joining_neighbours_keeps_their_mean(
    pairs, dtype, size
):
    p, recalled = (np.array(each) for each in zip(*pairs, strict=True))
    p = p.astype(dtype)
    whole = tally(p, recalled)
    assert (whole.n, whole.precision, np.signbit(whole.p).any()) == (len(p), dtype, False)
    few = whole.at_most(size)
    assert (few is whole) == (len(whole) <= size)
    frame = pd.DataFrame({"p": p + 0.0, "recalled": recalled, "forgotten": ~recalled}, dtype=float)
    cells = np.minimum((frame.p * size).astype(int), size - 1)
    for counted, by in ((whole, frame.p), (few, frame.p if few is whole else cells)):
        group = frame.groupby(by)
        for name in ("recalled", "forgotten"):
            assert getattr(counted, name).tolist() == group[name].sum().tolist()
        assert counted.p == pytest.approx(group.p.mean().to_numpy(), abs=1e-14)
        assert (np.diff(counted.p) >= 0).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("threshold", DEFAULT_THRESHOLDS)
def test_thresholds_and_what_is_near_them_are_rounded_as_predictions_are(dtype, threshold):
    """The single 0.9 lies below the double 0.9, the half 0.9 above."""
    at = dtype(threshold)
    around = np.array([np.nextafter(at, dtype(0)), at, np.nextafter(at, dtype(1))])
    assert tally(around, np.zeros(3, bool)).first_at_least(threshold) == 1
    (row,) = threshold_rows(tally(np.full(7, at), np.arange(7) > 0), [threshold])
    assert (row["tp"], row["fp"], row["nearby"]) == (6, 1, 7)
    assert row["bias"] == pytest.approx(threshold - 6 / 7, abs=1e-3)
    edges = [dtype(str(Decimal(str(threshold)) + way)) for way in (-NEARBY, NEARBY)]
    inside = [np.nextafter(edge, at) for edge in edges]
    outside = [np.nextafter(edge, 2 * edge - at) for edge in edges]
    for p, expected in ((edges, 0), (outside, 0), (inside, 2)):
        (row,) = threshold_rows(tally(np.array(p, dtype), [True, False]), [threshold])
        assert row["nearby"] == expected


def test_means_of_cells_stay_in_order_and_in_their_cells_however_sums_are_rounded():
    cells = from_sums([[0.0, 1, 0, 2], [1, 0, 0, 1], [0.3 + 1e-13, 0.3, 0, 3 + 1e-12]])
    assert cells.p.tolist() == pytest.approx([0.3, 0.3, 1])
    assert (cells.p[0], cells.p[2]) == (cells.p[1], 1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_thousand_users_on_the_threshold_stay_on_it(dtype):
    """Adding up rounds a thousand times, which must not push the mean over the edge."""
    user, half = tally(np.full(37, 0.9, dtype), np.arange(37) > 3), tally(np.float16([0.5]), [1])
    for parts, precision in (([user] * 1000, dtype), ([half], "float16"), ([half, user], dtype)):
        counts = FineCounts(DEFAULT_THRESHOLDS)
        for part in parts:
            counts.add(*fine_counts(part, DEFAULT_THRESHOLDS))
        whole = counts.tally()
        assert whole.precision == precision  # the finest counts
        assert whole.first_at_least(0.9) == len(whole) - (user in parts)


PANEL = full_panel()
LOG_LOSS, AUC = METRIC["log_loss"], METRIC["auc"]
# What sums of clusters give to the last digits; the rest depends on cells.
EXACT = {"log_loss", "log_loss_certain_wrong", "normalized_entropy", "brier", "brier_skill"}
EXACT |= {"mbe", "ece", "rmse_bins", "rmse_bins_floor", "rmse_bins_by_p"}
EXACT |= {"temporal_violation", "temporal_strict", "temporal_flat"}
EXACT |= {name for name in PANEL.names if name.startswith(("confusion_", "threshold_bias"))}

# Floors do not depend on outcomes, and errors along a curve are compared with them.
WITHOUT_INTERVAL = {"smece", "smece_exact", "smece_floor", "rmse_bins_floor", "ici"}
WITHOUT_INTERVAL |= {"corp_miscalibration_log", "corp_discrimination_log"}


def median(predictions):
    """A plug-in that is a function of predictions."""
    return float(np.median(predictions.p))


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_a_resample_is_the_panel_of_the_reviews_that_were_drawn(dtype):
    """Some cards were never reviewed, and some are not drawn."""
    whole = one_user(n=2000)
    whole = replace(whole, p=whole.p.astype(dtype), card=whole.card + 1)
    whole.p[:50] = np.linspace(0, 0.4, 50)
    tally, clusters = Tally.of(whole), 63
    edges = cell_edges(PANEL, whole.p.dtype, tally)
    assert {k / 10 for k in range(10)} <= {*edges}
    random = np.random.default_rng(1).integers(0, 4, (2, clusters))
    for counts, predictions in (
        (random, replace(whole, curves=None)),
        (np.ones((1, clusters), int), whole),
    ):
        table = cluster_sums(predictions, edges, predictions.card, clusters)
        drawn = tallies(table, [counts.astype(float)], edges, whole.p.dtype)
        for row, resample in zip(counts, drawn, strict=True):
            scores = PANEL.score(select(predictions, np.repeat(np.arange(2000), row[whole.card])))
            for name, value in PANEL.of(resample).items():
                near = 1e-12 if name in EXACT else 2e-2
                assert value == pytest.approx(scores[name], rel=near, abs=near, nan_ok=True), name
    nobody = np.eye(clusters)[[0]]
    (empty,) = tallies(table, [nobody], edges, whole.p.dtype)
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
    if groups == 10_000:
        missing = {name for name in PANEL.names if np.isnan(found.intervals[name]).all()}
        assert missing == WITHOUT_INTERVAL
        assert {metric.name for metric in PANEL if metric.is_mean} == {"log_loss", "brier", "mbe"}
        # the same draws, in cells that are those of these predictions
        alone = cluster_intervals(Panel([AUC, LOG_LOSS]), whole, ["user"], resamples=10)
        for name, interval in alone.items():
            assert found.intervals[name] == pytest.approx(interval, rel=5e-3)
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


# All there is, at one threshold: the others are the same code.
AT_90 = full_panel(thresholds=[0.9])
TEMPORAL = Panel([metric for metric in AT_90 if metric.name.startswith("temporal_")])


def test_right_predictions_score_best_and_bounds_are_the_ends_of_what_there_can_be():
    whole, recalled = one_user(2000), np.arange(2000) % 2 > 0
    p, falling = recalled.astype(float), whole.curves.p
    cases = [(p, recalled, falling), (1 - p, recalled, falling[:, ::-1])]  # right, and wrong
    cases += [(0 * p, recalled | True, 0 * falling), (0 * p + 1, recalled & False, falling)]
    cases += [(0 * p + 0.9, recalled, falling), (0 * p + 5e-324, recalled, falling)]
    cases += [(whole.p.astype(np.float32), recalled, falling)]
    scores = [
        AT_90.score(replace(whole, p=p, recalled=y, curves=replace(whole.curves, p=of_curves)))
        for p, y, of_curves in cases
    ]
    for metric in AT_90:
        values, (low, high) = [each[metric.name] for each in scores], metric.bounds
        ends = np.nanmin(values), np.nanmax(values)
        assert low - 1e-12 <= ends[0] <= ends[1] <= high + 1e-12, metric.name
        if not metric.name.endswith("_floor") and not metric.name.startswith("threshold_bias"):
            for end, bound in zip(ends, metric.bounds, strict=True):
                assert math.isinf(bound) or end == pytest.approx(bound, abs=1e-3), metric.name
            best = dict(zip(("lower", "higher"), ends, strict=True)).get(metric.better, values[0])
            assert values[0] == best, metric.name


def curves(p, times=None, weight=None):
    p = np.atleast_2d(p)
    n, k = p.shape
    times = np.arange(1.0, k + 1) if times is None else np.asarray(times)
    weight = np.full(k, 1 / k) if weight is None else np.asarray(weight)
    each = np.arange(n)
    rows = (np.broadcast_to(column, p.shape) for column in (times, weight))
    return Curves(each * 0, each * 0, each, *rows, p)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(arrays(np.float64, 7, elements=st.floats(0, 1, width=32)), min_size=1, max_size=3),
    st.lists(st.integers(1, 50), min_size=7, max_size=7).map(np.array),
    st.integers(0, 5),
)
def test_every_score_of_a_curve_is_that_of_a_plain_loop(some, counts, missing):
    """Times that are missing, at the end, do not count."""
    last = 7 - missing
    weight = np.where(np.arange(7) < last, counts, 0) / counts[:last].sum()
    p, times = (np.where(weight > 0, column, np.nan) for column in (some, np.arange(7.0)))
    drawn = curves(p, times, weight)
    rates = temporal_rates(drawn)
    expected = rates.sum(axis=0).mean(), *rates.mean(axis=1)
    scores = TEMPORAL.score(replace(one_user(), curves=drawn))
    assert (*scores.values(),) == pytest.approx(expected)
    for row, found in enumerate(rates.T):
        pairs = [
            (weight[i] * weight[j], p[row, j] - p[row, i]) for j in range(last) for i in range(j)
        ]
        total = sum(mass for mass, _ in pairs)
        rises = sum(mass for mass, rise in pairs if rise > 1e-9)
        stays = sum(mass for mass, rise in pairs if abs(rise) <= 1e-9)
        assert found == pytest.approx([rises / total, stays / total], abs=1e-12)


def test_noise_of_single_precision_is_flat_and_without_two_times_there_is_no_number():
    noisy = np.array([0.9, 0.9000003, 0.8999999], np.float32)
    assert temporal_rates(curves(noisy))[1, 0] == 1
    assert temporal_rates(curves(noisy.astype(np.float64)))[1, 0] == 0
    single = curves([[0.9, np.nan], [0.8, np.nan]], [1, np.nan], [1, 0])
    for some in (single, None, curves(np.empty((0, 4)))):
        scores = TEMPORAL.score(replace(one_user(), curves=some))
        assert np.isnan([*scores.values()]).all()


def test_times_are_intervals_that_occur_with_the_shares_they_stand_for():
    for given_days, days, counts in (
        ([5, 1, 1, 1, 30], [1, 5, 30], [3, 1, 1]),
        ([-1, np.nan, 4, 0], [0, 4], [1, 1]),
        *(([], [], []), ([7], [7], [1])),
        ([1, 1, 1, 2, 3, 4, 5, 9], [1, 3, 5], [1, 1, 1]),
    ):
        times, weights = sample_elapsed(given_days, k=3)
        assert times.tolist() == days
        assert weights * sum(counts) == pytest.approx(counts)


def test_a_curve_belongs_to_the_review_of_its_user_fold_and_row():
    names = {
        "user": np.array([0, 0, 0, 0, 1, 1, 1, 1]),
        "fold": np.array([0, 0, 1, 1, 0, 0, 1, 1]),
        "row": np.array([3, 7, 3, 7, 3, 7, 3, 7]),
    }
    reviews, one = np.array([5, 2, 7, 2]), one_user(n=8, curves=4)
    keys = {name: column[reviews] for name, column in names.items()}
    predictions = replace(one, **names, curves=replace(one.curves, **keys))
    assert reviews_of_curves(predictions).tolist() == reviews.tolist()
