"""Predictions in order with their outcomes counted: all of them, or in cells that add up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import columns

from srs_eval.metrics import tally as tally_module
from srs_eval.metrics.prediction_cells import (
    EQUAL_SHARES,
    FINE,
    FineCells,
    PredictionCells,
    fine_cell,
    tally_of_cells,
)
from srs_eval.metrics.sketch import Sketch, SketchMetric, bare_predictions
from srs_eval.metrics.sums import add_up
from srs_eval.metrics.tally import from_sums, tally

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
    arrays = (counted.p, counted.recalled, counted.forgotten)
    assert {array.dtype for array in arrays} == {np.dtype(np.float64)}


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


def test_cells_without_reviews_are_left_out_and_means_stay_in_order_and_in_range():
    made = from_sums(*np.array([[0.0, 1, 0, 2], [1, 0, 0, 1], [0.3 + 1e-13, 0.3, 0, 3 + 1e-12]]))
    assert made.p[0] == made.p[1] == pytest.approx(0.3)
    assert made.p[2:].tolist() == [1]


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
    one = from_sums(np.ones(1), 2 * np.ones(1), np.array([threshold + threshold + threshold]))
    assert (one.p, one.first_at_least(threshold)) == (pytest.approx([threshold], abs=1e-15), 0)


@quick
@given(reviews.filter(len), dtypes)
def test_edges_are_chosen_so_that_few_predictions_are_told_apart(pairs, dtype):
    """Cells hold their lower edges, so that few different predictions are exact."""
    p, recalled = columns(pairs)
    p = np.abs(p).astype(dtype)
    made = PredictionCells.for_predictions(tally(p, recalled))
    assert made.edges[0] == 0
    assert (np.diff(made.edges) > 0).all()
    assert set(p.astype(np.float64)) <= set(made.edges)
    (total,) = add_up([made], bare_predictions(p, recalled))
    counted, exact = tally_of_cells(total.values[0]), tally(p, recalled)
    assert counted.p == pytest.approx(exact.p, abs=1e-15)
    assert counted.recalled.tolist() == exact.recalled.tolist()


@pytest.mark.parametrize("width", [1e-5, 1e-9])
def test_cells_hold_equal_shares_however_close_predictions_are(width):
    p = 0.9 + width * np.random.default_rng(0).random(20_000)
    made = PredictionCells.for_predictions(tally(p, p > 0))
    held = np.bincount(made.cell(bare_predictions(p, p > 0)), minlength=made.cells)
    assert held.max() <= 2 * len(p) / EQUAL_SHARES


@pytest.mark.parametrize("distance", [0.5, 0.1, 1e-3, 1e-6, 1e-9])
def test_fine_cells_are_in_order_and_narrower_towards_0_and_1_as_logarithms_need(distance):
    """No wider than two millionths, nor than 0.0002 of the distance from the nearer end."""
    step = min(2e-6, 2e-4 * distance)
    apart = distance + step * np.arange(-3, 4)
    for p in (apart, 1 - apart[::-1]):
        assert (np.diff(fine_cell(p)) > 0).all()
    for width in (8, FINE):
        assert fine_cell(np.array([0.0, 1.0]), width).tolist() == [0, width]


def counted_in(width, *parts):
    """Count users one after the other; the second one as arrays from another process."""
    cells = FineCells(width)
    for number, (p, recalled) in enumerate(parts):
        if number == 1:
            elsewhere = FineCells(width)
            elsewhere.add(tally(p, recalled))
            cells.extend(elsewhere.arrays())
        else:
            cells.add(tally(p, recalled))
    return cells.tally()


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
    counted = counted_in(FINE, *[user] * 1000)
    assert (counted.first_at_least(0.9), counted.precision) == (0, dtype)
    half = np.array([0.5], np.float16), np.array([True])
    assert counted_in(8, half).precision == np.float16
    assert counted_in(8, half, user, half).precision == dtype  # the finest of all users counts


@dataclass(frozen=True, slots=True)
class Recalls(SketchMetric):
    """As short as a metric of one's own can be."""

    name: ClassVar[str] = "recalls"
    better: ClassVar[str] = "neither"
    section: ClassVar[str] = "test"

    def of(self, sketch):
        return sketch.tally.n_recalled


def test_a_metric_of_ones_own_needs_a_name_and_one_method_and_shares_what_is_derived():
    assert Recalls().of_outcomes([0.5, 0.7, 0.9], [1, 0, 1]) == 2
    assert (Recalls().has_interval, Recalls().needs) == (True, ())
    assert Recalls().bounds == (-math.inf, math.inf)
    assert math.isnan(Recalls().of_outcomes([], []))
    asked = []
    sketch = Sketch({}, lambda: tally(np.array([0.5, 0.7]), np.array([True, False])))
    assert [sketch.derived(asked.append), sketch.derived(asked.append)] == [None, None]
    assert asked == [sketch.tally]
    assert sketch.derived(len) == 2
