"""Predictions and outcomes counted in order, and added up in cells, against plain loops."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import columns, predicted

from srs_eval.metrics.bootstrap import (
    BINS,
    FineCounts,
    cell_edges,
    cluster_sums,
    fine_counts,
    first_cells,
)
from srs_eval.metrics.panel import Panel, default_panel
from srs_eval.metrics.predictions import select
from srs_eval.metrics.tally import from_sums, log_losses, tally
from srs_eval.metrics.threshold import DEFAULT_THRESHOLDS, NEARBY, threshold_rows
from srs_eval.plots.curves_plot import CELLS, elapsed_cell, elapsed_sums, recall_of

probabilities = st.one_of(
    st.floats(0, 1), st.sampled_from([0.0, -0.0, 1.0, 0.5, 0.9]), st.floats(0, 1e-300)
)
reviews = st.lists(st.tuples(probabilities, st.booleans()), max_size=60)
dtypes = st.sampled_from(["float16", "float32", "float64"])
quick = settings(max_examples=25, deadline=None)


@quick
@given(reviews, dtypes)
def test_it_is_what_unique_says(pairs, dtype):
    p, recalled = columns(pairs)
    p = p.astype(dtype)
    known, code = np.unique(p.astype(np.float64), return_inverse=True)
    counted = tally(p, recalled)
    assert counted.p.tolist() == known.tolist()
    assert not np.signbit(counted.p).any()
    assert counted.recalled.tolist() == np.bincount(code, recalled, len(known)).tolist()
    assert counted.forgotten.tolist() == np.bincount(code, ~recalled, len(known)).tolist()
    assert (counted.n, counted.precision) == (len(p), dtype)


@quick
@given(reviews, st.integers(1, 9))
def test_joining_neighbours_keeps_outcomes_and_means(pairs, size):
    counted = tally(*columns(pairs))
    few = counted.at_most(size)
    if len(counted) <= size:
        assert few is counted
        return
    cell = np.minimum((counted.p * size).astype(int), size - 1)
    held = np.bincount(cell, counted.count, size) > 0
    for name in ("forgotten", "recalled"):
        expected = np.bincount(cell, getattr(counted, name), size)[held]
        assert getattr(few, name).tolist() == expected.tolist()
    means = np.bincount(cell, counted.p * counted.count, size)[held] / few.count
    assert few.p == pytest.approx(means, abs=1e-14)
    assert (np.diff(few.p) >= 0).all()


@pytest.mark.parametrize("threshold", [0.7, 0.8, 0.9, 0.95])
def test_a_threshold_is_rounded_as_predictions_are_and_means_stay_in_their_cells(threshold):
    """The single 0.9 lies below the double 0.9, the half 0.9 above."""
    for dtype in ("float16", "float32"):
        at = np.array(threshold, dtype)
        p = np.array([np.nextafter(at, at.dtype.type(0)), at, np.nextafter(at, at.dtype.type(1))])
        assert tally(p, np.zeros(3, bool)).first_at_least(threshold) == 1
    made = from_sums([[0.0, 1, 0, 2], [1, 0, 0, 1], [0.3 + 1e-13, 0.3, 0, 3 + 1e-12]])
    assert made.p.tolist() == pytest.approx([0.3, 0.3, 1])  # in order, and in range
    assert (made.p[0], made.p[2]) == (made.p[1], 1)
    below = 3 * threshold * (1 - 1e-15)  # adding up rounds
    one = from_sums([[1], [2], [below]], within=(threshold, 1))
    assert one.first_at_least(threshold) == 0


def counted_one_after_the_other(*parts):
    """Count users, each as another process would."""
    here = FineCounts(DEFAULT_THRESHOLDS)
    for p, recalled in parts:
        user = tally(p, recalled)
        here.add(*fine_counts(user, DEFAULT_THRESHOLDS))
    return here.tally()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_thousand_users_on_the_threshold_stay_on_it(dtype):
    """Adding up rounds a thousand times, which must not push the mean over the edge."""
    user = np.full(37, 0.9, dtype), np.arange(37) > 3
    counted = counted_one_after_the_other(*[user] * 1000)
    assert (counted.first_at_least(0.9), counted.precision) == (0, dtype)
    half = np.array([0.5], np.float16), np.array([True])
    assert counted_one_after_the_other(half).precision == np.float16
    assert counted_one_after_the_other(half, user, half).precision == dtype  # the finest counts


PANEL = default_panel()


@settings(max_examples=8, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 9), min_size=1, max_size=4),
    seed=st.integers(0, 99),
    dtype=st.sampled_from(["float16", "float32", "float64"]),
)
def test_sums_of_clusters_equal_a_plain_loop(one_user, sizes, seed, dtype):
    """Clusters may be empty, in the middle and at either end."""
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    predictions = one_user(n=len(cluster), cards=50, curves=0, seed=seed)
    predictions = replace(predictions, p=predictions.p.astype(dtype))
    edges = cell_edges(PANEL, predictions.p.dtype)
    table = cluster_sums(predictions, edges, cluster, len(sizes)).toarray()
    p, recalled = predictions.p.astype(float), predictions.recalled
    counts, losses, _, *bins, cells = first_cells(edges)
    expected = np.zeros((len(sizes), cells, 3))
    for row, of in enumerate(cluster):
        cell, outcome = (edges <= p[row]).sum() - 1, recalled[row]
        expected[of, counts + cell] += not outcome, outcome, p[row]
        loss = log_losses(p[row : row + 1], outcome)[0]
        expected[of, losses] += loss, (p[row] - outcome) ** 2, 0
        for first, kind in zip(bins, BINS, strict=True):
            one = select(predictions, slice(row, row + 1))
            place = first + kind.columns(one)[0][0]
            expected[of, place] += 1, p[row] - outcome, p[row] * (1 - p[row])
    np.testing.assert_allclose(table.reshape(expected.shape), expected, atol=1e-12)
    assert expected[:, counts:losses, :2].sum(axis=(1, 2)).tolist() == sizes


def recall(days, p=0.9, recalled=1):
    """Compute recall over time, and the cells of the reviews."""
    n = len(days)
    elapsed = None if days[0] is None else np.asarray(days, np.float64)
    some = predicted(np.zeros(n) + p, np.zeros(n, bool) | (recalled > 0), elapsed_days=elapsed)
    cell = None if elapsed is None else elapsed_cell(elapsed)
    return recall_of(elapsed_sums(some)), cell


def test_cells_are_narrow_for_short_whole_days_and_exist_for_all():
    _, cell = recall([0, -1, 1e-9, 1e-5, 0.5, *range(1, 24), 1000, 1010, 36_500, 1e12])
    assert (*cell[:3], cell[28] - cell[29], cell.max()) == (0, 0, 1, 0, CELLS - 1)
    assert (np.diff(cell[2:29]) > 0).all()


def test_recall_over_time_is_that_of_a_plain_loop_in_about_equally_large_bins():
    rng = np.random.default_rng(0)
    days = rng.choice([0, 1, 2, 5, 9], 400).astype(float)
    p, recalled = rng.uniform(size=400), rng.uniform(size=400) < 0.8
    found, _ = recall(days, p, recalled)
    np.testing.assert_allclose(found.days, [1, 2, 5, 9])
    for here, *of_bin in zip(
        days == found.days[:, None].round(), found.n, found.observed, found.predicted, strict=True
    ):
        assert of_bin == pytest.approx([here.sum(), recalled[here].mean(), p[here].mean()])
    assert found.same_day == (days == 0).sum()
    found, _ = recall(np.exp(rng.normal(3, 1, 10_000)))
    assert len(found.n) == 14
    assert found.n.max() < 1.4 * found.n.min()
    assert [len(recall(np.arange(1.0, 1 + n))[0].n) for n in (1, 39, 40)] == [1, 1, 2]
    unknown, _ = recall([None, None])
    assert (len(unknown.n), unknown.same_day) == (0, 2)


def rows(p, recalled, thresholds=(0.9,)):
    return threshold_rows(tally(p, recalled), Panel([len_of], thresholds).biases)


def len_of(predictions):
    return float(len(predictions))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("threshold", DEFAULT_THRESHOLDS)
def test_predictions_at_a_threshold_and_next_to_the_edge_of_what_is_nearby(dtype, threshold):
    (row,) = rows(np.full(7, threshold, dtype), np.arange(7) > 0, (threshold,))
    assert (row["tp"], row["fp"], row["nearby"]) == (6, 1, 7)
    assert row["bias"] == pytest.approx(threshold - 6 / 7, abs=1e-3)
    edges = [dtype(str(Decimal(str(threshold)) + way)) for way in (-NEARBY, NEARBY)]
    inside = [np.nextafter(edge, dtype(threshold)) for edge in edges]
    outside = [np.nextafter(edge, 2 * edge - dtype(threshold)) for edge in edges]
    for p, expected in ((edges, 0), (outside, 0), (inside, 2)):
        (row,) = rows(np.array(p, dtype), np.array([True, False]), (threshold,))
        assert row["nearby"] == expected
