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
from srs_eval.metrics.recall_over_time import ElapsedSums
from srs_eval.metrics.sums import Totals, add_up, codes_of, stacked
from srs_eval.metrics.threshold import ThresholdSums

quick = settings(max_examples=25, deadline=None)


@dataclass(frozen=True)
class ByCard:
    """A sum of an outsider: how many, how many recalled, and the predictions, by card."""

    cells: int = 50

    def cell(self, predictions):
        return predictions.card

    def values(self, predictions):
        n = len(predictions)
        return np.ones(n, np.bool_), predictions.recalled, predictions.p


@dataclass(frozen=True)
class Together:
    """The same in one cell."""

    cells: int = 1

    def cell(self, predictions):
        return None

    def values(self, predictions):
        return ByCard().values(predictions)


OURS = (
    ScoreSums(),
    TrainRateSums(),
    ThresholdSums(0.9),
    FactSums(),
    LogBinSums(),
    EqualBinSums(10),
    PredictionCells(np.arange(64) / 64),
    ElapsedSums(),
    ByCard(),
    Together(),
)


def invented(n, seed, dtype="float64"):
    """Predictions in sixty-fourths, which add up without rounding in any order."""
    rng = np.random.default_rng(seed)
    card = rng.choice([0, 3, 49], n)
    return predicted(
        (rng.integers(0, 65, n) / 64).astype(dtype),
        rng.random(n) < 0.8,
        card=card,
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


@pytest.mark.parametrize("sums", OURS, ids=lambda sums: type(sums).__name__)
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
@pytest.mark.parametrize("sums", [ByCard(), ThresholdSums(0.9), Together()])
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


ANY_LABELS = [
    np.array([1, 0, 1, 3, 0], dtype) for dtype in ("int8", "uint64", "float64", "U3", "?")
]


@quick
@given(st.lists(st.integers(-50, 50) | st.integers(-(2**60), 2**60), min_size=1).map(np.array))
@example(np.array([-128, 127, 0] * 12, np.int8))
@example(ANY_LABELS[0])
@example(ANY_LABELS[1])
@example(ANY_LABELS[2])
@example(ANY_LABELS[3])
@example(ANY_LABELS[4])
@example(np.empty(0, np.int64))
def test_labels_are_numbered_in_their_order(labels):
    expected = np.unique(labels, return_inverse=True)[1]
    code, count = codes_of(labels)
    assert code.tolist() == expected.tolist()
    assert count == len(np.unique(labels))
