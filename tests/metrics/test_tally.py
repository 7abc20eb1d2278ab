from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srs_eval.metrics import tally as tally_module
from srs_eval.metrics.tally import from_sums, tally

probabilities = st.one_of(
    st.floats(0, 1), st.sampled_from([0.0, -0.0, 1.0, 0.5, 0.9]), st.floats(0, 1e-300)
)
reviews = st.lists(st.tuples(probabilities, st.booleans()), max_size=60)
dtypes = st.sampled_from(["float16", "float32", "float64"])
quick = settings(max_examples=25, deadline=None)


def columns(pairs, dtype="float64"):
    p = np.array([p for p, _ in pairs], dtype)
    return p, np.array([recalled for _, recalled in pairs], bool)


@quick
@given(reviews, dtypes)
def test_it_is_what_unique_says(pairs, dtype):
    p, recalled = columns(pairs, dtype)
    known, code = np.unique(p.astype(np.float64), return_inverse=True)
    counted = tally(p, recalled)
    assert counted.p.tolist() == known.tolist()
    assert not np.signbit(counted.p).any()
    assert counted.recalled.tolist() == np.bincount(code, recalled, len(known)).tolist()
    assert counted.forgotten.tolist() == np.bincount(code, ~recalled, len(known)).tolist()
    assert counted.precision == dtype
    assert {column.dtype for column in (counted.p, counted.recalled, counted.forgotten)} == {
        np.dtype(np.float64)
    }


def test_nothing_makes_a_tally_of_nothing():
    counted = tally(np.empty(0, np.float32), np.empty(0, bool))
    assert (len(counted), counted.n) == (0, 0)
    assert not counted.has_both_outcomes
    assert counted.precision == np.float32
    assert len(counted.at_most(4)) == 0
    assert counted.first_at_least(0.5) == 0


@quick
@given(reviews, st.integers(1, 9), st.sampled_from([3, 2**15]))
def test_joining_neighbours_keeps_outcomes_and_means(pairs, size, piece):
    counted = tally(*columns(pairs))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tally_module, "PIECE", piece)
        few = counted.at_most(size)
    assert len(few) <= max(size, 1) or len(counted) <= size
    assert (few.n_forgotten, few.n_recalled) == (counted.n_forgotten, counted.n_recalled)
    assert few.residual.sum() == pytest.approx(counted.residual.sum(), abs=1e-12)
    assert (np.diff(few.p) >= 0).all()
    if len(counted) > size:
        cell = np.minimum((counted.p * size).astype(int), size - 1)
        weight = np.bincount(cell, counted.count, size)
        means = np.bincount(cell, counted.p * counted.count, size)[weight > 0] / weight[weight > 0]
        assert few.p == pytest.approx(means, abs=1e-14)


@pytest.mark.parametrize("value", [0.9, 0.1, 0.7, 1.0, 0.0])
def test_equal_predictions_keep_their_value_when_they_are_added_up(value):
    """0.9 + 0.9 + 0.9 is not 2.7, but its mean is 0.9 nevertheless."""
    total = np.array([value + value + value])
    made = from_sums(np.array([1.0]), np.array([2.0]), total)
    assert made.p == pytest.approx([value], abs=1e-15)
    assert made.first_at_least(value) == 0


def test_cells_without_reviews_are_left_out_and_means_stay_in_order_and_in_range():
    forgotten, recalled = np.array([0.0, 1, 0, 2]), np.array([1.0, 0, 0, 1])
    made = from_sums(forgotten, recalled, np.array([0.3 + 1e-13, 0.3, 0.0, 3 + 1e-12]))
    assert len(made) == 3
    assert made.p[0] == made.p[1] == pytest.approx(0.3)
    assert made.p[2] == 1


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("threshold", [0.7, 0.8, 0.9, 0.95])
def test_a_threshold_is_rounded_as_the_predictions_are(dtype, threshold):
    """The single 0.9 lies below the double 0.9, the half 0.9 above."""
    at = np.array(threshold, dtype)
    p = np.array([np.nextafter(at, at.dtype.type(0)), at, np.nextafter(at, at.dtype.type(1))])
    assert tally(p, np.zeros(3, bool)).first_at_least(threshold) == 1


@pytest.mark.parametrize("threshold", [0.7, 0.8, 0.9, 0.95])
def test_what_rounding_puts_below_a_threshold_is_on_it(threshold):
    """Means of equal doubles are off by their last digits; no model predicts 1e-12 less."""
    p = threshold + np.array([-1e-11, -1e-14, 0, 1e-14])
    assert tally(p, np.zeros(4, bool)).first_at_least(threshold) == 1
