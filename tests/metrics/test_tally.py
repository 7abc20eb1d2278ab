"""Predictions and outcomes counted in order, joined in cells, and cut at thresholds."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srs_eval.metrics.bootstrap import FineCounts, fine_counts
from srs_eval.metrics.tally import from_sums, tally
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
