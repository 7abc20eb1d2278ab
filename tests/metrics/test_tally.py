"""Predictions and outcomes counted in order, joined in cells, and cut at thresholds."""

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srs_eval.metrics.bootstrap import FineCounts, fine_counts
from srs_eval.metrics.tally import from_sums, tally
from srs_eval.metrics.threshold import DEFAULT_THRESHOLDS, NEARBY, threshold_rows

probabilities = st.one_of(
    st.floats(0, 1), st.sampled_from([0.0, -0.0, 1.0, 0.5, 0.9]), st.floats(0, 1e-300)
)
reviews = st.lists(st.tuples(probabilities, st.booleans()), max_size=60)


@settings(max_examples=40, deadline=None)
@given(reviews, st.sampled_from(["float16", "float32", "float64"]), st.integers(1, 9))
def test_predictions_are_counted_in_order_and_joining_neighbours_keeps_their_mean(
    pairs, dtype, size
):
    p = np.array([p for p, _ in pairs], dtype)
    recalled = np.array([outcome for _, outcome in pairs], bool)
    distinct, code = np.unique(p.astype(float), return_inverse=True)
    whole = tally(p, recalled)
    assert whole.p.tolist() == distinct.tolist()
    assert not np.signbit(whole.p).any()
    assert whole.recalled.tolist() == np.bincount(code, recalled, len(distinct)).tolist()
    assert whole.forgotten.tolist() == np.bincount(code, ~recalled, len(distinct)).tolist()
    assert (whole.n, whole.precision) == (len(p), dtype)
    few = whole.at_most(size)
    if len(whole) <= size:
        assert few is whole
        return
    cell = np.minimum((whole.p * size).astype(int), size - 1)
    used = np.bincount(cell, minlength=size) > 0
    for name in ("forgotten", "recalled"):
        expected = np.bincount(cell, getattr(whole, name), size)[used]
        assert getattr(few, name).tolist() == expected.tolist()
    means = np.bincount(cell, whole.p * whole.count, size)[used] / few.count
    assert few.p == pytest.approx(means, abs=1e-14)
    assert (np.diff(few.p) >= 0).all()


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
    made = from_sums([[0.0, 1, 0, 2], [1, 0, 0, 1], [0.3 + 1e-13, 0.3, 0, 3 + 1e-12]])
    assert made.p.tolist() == pytest.approx([0.3, 0.3, 1])
    assert (made.p[0], made.p[2]) == (made.p[1], 1)
    for threshold in DEFAULT_THRESHOLDS:
        below = 3 * threshold * (1 - 1e-15)
        one = from_sums([[1], [2], [below]], within=(threshold, 1))
        assert one.first_at_least(threshold) == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_thousand_users_on_the_threshold_stay_on_it(dtype):
    """Adding up rounds a thousand times, which must not push the mean over the edge."""

    def together(*parts):
        counts = FineCounts(DEFAULT_THRESHOLDS)
        for p, recalled in parts:
            counts.add(*fine_counts(tally(p, recalled), DEFAULT_THRESHOLDS))
        return counts.tally()

    user = np.full(37, 0.9, dtype), np.arange(37) > 3
    whole = together(*[user] * 1000)
    assert (whole.first_at_least(0.9), whole.precision) == (0, dtype)
    half = np.array([0.5], np.float16), np.array([True])
    assert together(half).precision == np.float16
    assert together(half, user, half).precision == dtype  # the finest counts
