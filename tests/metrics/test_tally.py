"""Predictions and outcomes counted in order, and added up in cells, against plain loops."""

from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pairs import columns, predicted

from srs_eval.metrics import prediction_cells as cells
from srs_eval.metrics import tally as tally_module
from srs_eval.metrics.bins import FactSums, LogBinSums
from srs_eval.metrics.calibration import EqualBinSums
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.prediction_cells import FineCells, PredictionCells
from srs_eval.metrics.proper import ScoreSums
from srs_eval.metrics.sketch import bare_predictions, exact_sketch
from srs_eval.metrics.sums import add_up, codes_of
from srs_eval.metrics.tally import from_sums, tally
from srs_eval.metrics.threshold import (
    DEFAULT_THRESHOLDS,
    NEARBY,
    ThresholdSums,
    threshold_biases,
    threshold_rows,
)
from srs_eval.plots.recall_over_time import ELAPSED, recall_of

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
    assert counted.has_both_outcomes == (0 < recalled.sum() < len(p))
    assert (counted.n, counted.precision) == (len(p), dtype)


@quick
@given(reviews, st.integers(1, 9), st.sampled_from([3, 2**15]))
def test_joining_neighbours_keeps_outcomes_and_means(pairs, size, piece):
    counted = tally(*columns(pairs))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tally_module, "PIECE", piece)
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
def test_a_threshold_is_rounded_as_predictions_are_and_their_means_count_as_they_do(threshold):
    """The single 0.9 lies below the double 0.9, the half 0.9 above."""
    for dtype in ("float16", "float32"):
        at = np.array(threshold, dtype)
        p = np.array([np.nextafter(at, at.dtype.type(0)), at, np.nextafter(at, at.dtype.type(1))])
        assert tally(p, np.zeros(3, bool)).first_at_least(threshold) == 1
    # No model predicts 1e-12 less.
    p = threshold + np.array([-1e-11, -1e-14, 0, 1e-14])
    assert tally(p, np.zeros(4, bool)).first_at_least(threshold) == 1
    made = from_sums(*np.array([[0.0, 1, 0, 2], [1, 0, 0, 1], [0.3 + 1e-13, 0.3, 0, 3 + 1e-12]]))
    assert made.p.tolist() == pytest.approx([0.3, 0.3, 1])  # in order, and in range
    assert (made.p[0], made.p[2]) == (made.p[1], 1)
    one = from_sums(np.ones(1), 2 * np.ones(1), np.array([threshold + threshold + threshold]))
    assert (one.p, one.first_at_least(threshold)) == (pytest.approx([threshold], abs=1e-15), 0)


def counted_in(width, *parts):
    """Count users one after the other; the second one as arrays from another process."""
    here = FineCells(width)
    for number, (p, recalled) in enumerate(parts):
        there = FineCells(width) if number == 1 else here
        there.add(bare_predictions(p, recalled))
        if there is not here:
            here.extend(there.arrays())
    return here.tally()


@quick
@given(st.lists(reviews, max_size=4), st.sampled_from([8, 2**12]))
def test_users_one_after_the_other_are_as_all_together(users, width):
    apart = counted_in(width, *map(columns, users))
    together = counted_in(width, columns([pair for pairs in users for pair in pairs]))
    assert apart.p == pytest.approx(together.p, abs=1e-14)
    assert apart.forgotten.tolist() == together.forgotten.tolist()
    assert apart.recalled.tolist() == together.recalled.tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_thousand_users_on_the_threshold_stay_on_it(dtype):
    """Adding up rounds a thousand times, which must not push the mean over the edge."""
    user = np.full(37, 0.9, dtype), np.arange(37) > 3
    counted = counted_in(cells.FINE, *[user] * 1000)
    assert (counted.first_at_least(0.9), counted.precision) == (0, dtype)
    half = np.array([0.5], np.float16), np.array([True])
    assert counted_in(8, half).precision == np.float16
    assert counted_in(8, half, user, half).precision == dtype  # the finest of all users counts


@dataclass(frozen=True)
class ByCard:
    """A sum of an outsider: how many, how many recalled, and the predictions, by card."""

    cells: int = 50

    def cell(self, predictions):
        return predictions.card if self.cells > 1 else None

    def values(self, predictions):
        return np.ones(len(predictions), np.bool_), predictions.recalled, predictions.p


SUMS = (
    *(ScoreSums(), ThresholdSums(0.9), FactSums(), LogBinSums()),
    *(EqualBinSums(10), PredictionCells(np.arange(64) / 64), ELAPSED, ByCard(), ByCard(1)),
)


def by_loop(sums, predictions, group):
    """Add up one review after the other, by group and cell."""
    columns = [np.asarray(column, np.float64) for column in sums.values(predictions)]
    cell = sums.cell(predictions)
    added = {}
    for row, values in enumerate(zip(*columns, strict=True)):
        key = int(group[row]), 0 if cell is None else int(cell[row])
        added[key] = added.get(key, 0) + np.array(values)
    return added


@pytest.mark.parametrize("sums", SUMS, ids=lambda sums: type(sums).__name__)
@settings(max_examples=6, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 9), min_size=1, max_size=12),
    chunk=st.sampled_from([1, 7, 2**14]),
    seed=st.integers(0, 99),
    dtype=st.sampled_from(["float16", "float32", "float64"]),
)
def test_groups_and_chunks_of_any_size_equal_a_plain_loop(
    one_user, sums, sizes, chunk, seed, dtype
):
    """Groups may be empty, in the middle and at either end, and be cut by chunks."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    predictions = one_user(n=len(group), cards=50, curves=0, seed=seed)
    predictions = replace(predictions, p=predictions.p.astype(dtype))
    (total,) = add_up([sums], predictions, group, len(sizes), chunk=chunk)
    (whole,) = add_up([sums], predictions, chunk=chunk)
    expected = by_loop(sums, predictions, group)
    assert total.values.shape[0] == len(sizes)
    for number, of_group in enumerate(total.values):
        for cell, values in zip(total.cell.tolist(), of_group, strict=True):
            added = expected.pop((number, cell), np.zeros(len(values)))
            assert values == pytest.approx(added, abs=1e-6, rel=1e-6)
    assert not expected
    together = total.values.sum(axis=0)[np.isin(total.cell, whole.cell)]
    assert whole.values[0] == pytest.approx(together, abs=1e-6, rel=1e-6)
    for each in (total, whole):
        assert (np.diff(each.cell) > 0).all()
        assert each.values.dtype == np.float64


whole_numbers = st.lists(st.integers(-50, 50) | st.integers(-(2**60), 2**60), min_size=1)
typed = [np.array([1, 0, 1, 3, 0], dtype) for dtype in ("int8", "uint64", "float64", "U3", "?")]


@settings(max_examples=25, deadline=None)
@given(whole_numbers.map(np.array) | st.sampled_from([*typed, np.empty(0, np.int64)]))
@example(np.array([-128, 127, 0] * 12, np.int8))
def test_labels_are_numbered_in_their_order(labels):
    known, expected = np.unique(labels, return_inverse=True)
    code, count = codes_of(labels)
    assert (code.tolist(), count) == (expected.tolist(), len(known))


def recall(days, p=0.9, recalled=1, **options):
    """Compute recall over time, and the cells of the reviews."""
    n = len(days)
    elapsed = None if days[0] is None else np.asarray(days, np.float64)
    some = predicted(np.zeros(n) + p, np.zeros(n, bool) | (recalled > 0), elapsed_days=elapsed)
    (totals,) = add_up([ELAPSED], some)
    return recall_of(totals.values[0], **options), ELAPSED.cell(some)


def test_cells_are_narrow_for_short_whole_days_and_exist_for_all():
    _, cell = recall([0, -1, 1e-9, 1e-5, 0.5, *range(1, 24), 1000, 1010, 36_500, 1e12])
    assert (*cell[:3], cell[28] - cell[29], cell.max()) == (0, 0, 1, 0, ELAPSED.cells - 1)
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
    panel = Panel([threshold_biases(thresholds)])
    return threshold_rows(exact_sketch(bare_predictions(p, recalled), panel), panel)


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
