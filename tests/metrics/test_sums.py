"""Sums of groups of reviews in cells, against plain loops; and recall over time, made of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pairs import predicted

from srs_eval.metrics.bins import FactSums, LogBinSums
from srs_eval.metrics.calibration import EqualBinSums
from srs_eval.metrics.prediction_cells import PredictionCells
from srs_eval.metrics.proper import ScoreSums, TrainRateSums
from srs_eval.metrics.recall_over_time import ELAPSED, recall_of
from srs_eval.metrics.sums import Totals, add_up, codes_of, stacked
from srs_eval.metrics.threshold import ThresholdSums


@dataclass(frozen=True)
class ByCard:
    """A sum of an outsider: how many, how many recalled, and the predictions, by card."""

    cells: int = 50

    def cell(self, predictions):
        return predictions.card if self.cells > 1 else None

    def values(self, predictions):
        return np.ones(len(predictions), np.bool_), predictions.recalled, predictions.p


SUMS = (
    *(ScoreSums(), TrainRateSums(), ThresholdSums(0.9), FactSums(), LogBinSums()),
    *(EqualBinSums(10), PredictionCells(np.arange(64) / 64), ELAPSED, ByCard(), ByCard(1)),
)


def invented(n, seed, dtype="float64"):
    """Predictions in sixty-fourths, which add up without rounding in any order."""
    rng = np.random.default_rng(seed)
    return predicted(
        (rng.integers(0, 65, n) / 64).astype(dtype),
        rng.random(n) < 0.8,
        card=rng.choice([0, 3, 49], n),
        elapsed_days=rng.integers(0, 300, n).astype(float),
        nth_review=rng.integers(1, 20, n),
        lapses=rng.integers(0, 5, n),
        train_rate=np.full(n, 0.85),
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
    dtype=st.sampled_from(["float32", "float64"]),
)
def test_groups_and_chunks_of_any_size_equal_a_plain_loop(sums, sizes, chunk, seed, dtype):
    """Groups may be empty, in the middle and at either end, and be cut by chunks."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    predictions = invented(len(group), seed, dtype)
    (total,) = add_up([sums], predictions, group, len(sizes), chunk=chunk)
    (whole,) = add_up([sums], predictions, chunk=chunk)
    expected = by_loop(sums, predictions, group)
    assert total.values.shape[0] == len(sizes)
    for number, of_group in enumerate(total.values):
        for cell, values in zip(total.cell.tolist(), of_group, strict=True):
            added = expected.pop((number, cell), np.zeros(len(values)))
            assert values == pytest.approx(added, abs=1e-6, rel=1e-6)
    assert not expected
    assert np.isin(whole.cell, total.cell).all()
    assert whole.values[0] == pytest.approx(
        total.values.sum(axis=0)[np.isin(total.cell, whole.cell)], abs=1e-6, rel=1e-6
    )
    for each in (total, whole):
        assert (np.diff(each.cell) > 0).all()
        assert each.values.dtype == np.float64


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("sums", [ByCard(), ThresholdSums(0.9), ByCard(1)])
def test_one_group_is_added_up_as_precisely_as_several(sums, dtype):
    rng = np.random.default_rng(0)
    near = rng.uniform(0.885, 0.915, 3000).astype(dtype)
    predictions = replace(invented(3000, 0), p=near, recalled=rng.random(3000) < 0.9)
    (alone,) = add_up([sums], predictions)
    (grouped,) = add_up([sums], predictions, np.zeros(3000, np.int64), 1)
    assert alone.values == pytest.approx(grouped.values, rel=1e-12)


def test_groups_that_are_stacked_keep_their_cells():
    one = Totals(np.array([1, 4]), np.array([[[1.0], [2.0]]]))
    other = Totals(np.array([0, 4]), np.array([[[3.0], [4.0]], [[5.0], [6.0]]]))
    both = stacked([one, other])
    assert both.cell.tolist() == [0, 1, 4]
    assert both.values[..., 0].tolist() == [[0, 1, 2], [3, 0, 4], [5, 0, 6]]


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
    assert (cell[:2] == 0).all()
    assert cell[2] == 1
    assert (np.diff(cell[2:29]) > 0).all()
    assert cell[28] == cell[29]
    assert cell.max() == ELAPSED.cells - 1


def test_recall_over_time_is_that_of_a_plain_loop_in_about_equally_large_bins():
    rng = np.random.default_rng(0)
    days = rng.choice([0, 1, 2, 5, 9], 400).astype(float)
    p, recalled = rng.uniform(size=400), rng.uniform(size=400) < 0.8
    found, _ = recall(days, p, recalled)
    np.testing.assert_allclose(found.days, [1, 2, 5, 9])
    for place, day in enumerate((1, 2, 5, 9)):
        here = days == day
        assert found.n[place] == here.sum()
        assert found.observed[place] == pytest.approx(recalled[here].mean())
        assert found.predicted[place] == pytest.approx(p[here].mean())
    assert found.same_day == (days == 0).sum()
    found, _ = recall(np.exp(rng.normal(3, 1, 10_000)))
    assert len(found.n) == 14
    assert found.n.max() < 1.4 * found.n.min()
    assert [len(recall(np.arange(1.0, 1 + n))[0].n) for n in (1, 39, 40)] == [1, 1, 2]
    found, _ = recall(np.repeat([1.0, 2.0], [60, 40]), recalled=np.repeat([0, 1], [60, 40]), bins=2)
    assert (found.n.tolist(), found.recalled.tolist()) == ([60, 40], [0, 40])
    unknown, _ = recall([None, None])
    assert (len(unknown.n), unknown.same_day) == (0, 2)
