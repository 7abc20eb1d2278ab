from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srs_eval.metrics.discrimination import roc_of
from srs_eval.metrics.prediction_cells import (
    EQUAL_SHARES,
    FINE,
    FineCells,
    PredictionCells,
    fine_cell,
    tally_of_cells,
)
from srs_eval.metrics.sketch import bare_predictions
from srs_eval.metrics.sums import add_up
from srs_eval.metrics.tally import tally

probabilities = st.floats(0, 1) | st.sampled_from([0.0, 0.9, 1.0])
reviews = st.lists(st.tuples(probabilities, st.booleans()), max_size=40)
quick = settings(max_examples=20, deadline=None)


def columns(pairs):
    return np.array([p for p, _ in pairs], float), np.array([r for _, r in pairs], bool)


def counted_in(width, *parts):
    cells = FineCells(width)
    for p, recalled in parts:
        cells.add(tally(p, recalled))
    return cells.tally()


def test_cells_hold_their_lower_edges_and_the_first_all_that_is_below():
    cells = PredictionCells(np.array([0.0, 1 / 8, 0.5]))
    p = np.array([0.0, -0.0, 1 / 8, np.nextafter(1 / 8, 0), 0.5, 1.0])
    found = cells.cell(bare_predictions(p, np.ones(6, bool)))
    assert (found.tolist(), cells.cells) == ([0, 0, 1, 0, 2, 2], 3)


@quick
@given(reviews.filter(len), st.sampled_from(["float16", "float32", "float64"]))
def test_edges_are_chosen_so_that_few_predictions_are_told_apart(pairs, dtype):
    """Resampled clusters of few different predictions, such as a default, are exact."""
    p, recalled = columns(pairs)
    p = p.astype(dtype)
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


@quick
@given(st.lists(probabilities, min_size=1, max_size=40), st.sampled_from([8, FINE]))
def test_fine_cells_are_in_the_order_of_predictions(p, width):
    cell = fine_cell(np.sort(p), width)
    assert (np.diff(cell) >= 0).all()
    assert cell.min() >= 0
    assert cell.max() <= width
    assert fine_cell(np.array([0.0, 1.0]), width).tolist() == [0, width]


@pytest.mark.parametrize("distance", [0.5, 0.1, 1e-3, 1e-6, 1e-9])
def test_fine_cells_get_narrower_towards_0_and_1_as_logarithms_need(distance):
    """No wider than two millionths, nor than 0.0002 of the distance from the nearer end."""
    step = min(2e-6, 2e-4 * distance)
    apart = distance + step * np.arange(-3, 4)
    for p in (apart, 1 - apart):
        assert len(set(fine_cell(p))) == 7


@quick
@given(st.lists(reviews, max_size=4), st.sampled_from([8, 2**12]))
def test_users_one_after_the_other_are_as_all_together(users, width):
    parts = [columns(pairs) for pairs in users]
    apart = counted_in(width, *parts)
    together = counted_in(width, columns([pair for pairs in users for pair in pairs]))
    assert apart.p == pytest.approx(together.p, abs=1e-14)
    assert apart.forgotten.tolist() == together.forgotten.tolist()
    assert apart.recalled.tolist() == together.recalled.tolist()


def test_the_finest_precision_of_all_users_counts():
    half, single, double = (
        (np.array([0.5], dtype), np.array([True])) for dtype in ("float16", "float32", "float64")
    )
    assert counted_in(8, half).precision == np.float16
    assert counted_in(8, half, single, half).precision == np.float32
    assert counted_in(8, single, double).precision == np.float64


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_thousand_users_on_the_threshold_stay_on_it(dtype):
    """Adding up rounds a thousand times, which must not push the mean over the edge."""
    user = np.full(37, 0.9, dtype), np.arange(37) > 3
    counted = counted_in(FINE, *[user] * 1000)
    assert counted.first_at_least(0.9) == 0
    ((_, fpr, tpr),) = roc_of(counted, thresholds=(0.9,)).at
    assert (fpr, tpr) == (1, 1)
