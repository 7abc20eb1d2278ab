from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from srs_eval.metrics.panel import Panel
from srs_eval.metrics.sketch import bare_predictions, exact_sketch
from srs_eval.metrics.threshold import (
    DEFAULT_THRESHOLDS,
    NEARBY,
    STATISTICS,
    ConfusionCounts,
    confusion_statistics,
    threshold_biases,
    threshold_rows,
)


def rows(p, recalled, thresholds=(0.9,)):
    panel = Panel([confusion_statistics(thresholds), threshold_biases(thresholds)])
    return threshold_rows(exact_sketch(bare_predictions(p, recalled), panel), panel)


def test_rows_tell_counts_statistics_intervals_and_the_bias_nearby():
    p = np.array([0.95, 0.91, 0.9, 0.89, 0.88, 0.5])
    recalled = np.array([True, True, False, False, True, False])
    (row,) = rows(p, recalled)
    made = ConfusionCounts(2, 1, 1, 2)
    names = ("tp", "fp", "fn", "tn")
    assert [row[name] for name in names] == [2, 1, 1, 2]
    for statistic in STATISTICS:
        assert row[statistic] == made.rate(statistic)
        assert (row[f"{statistic}_low"], row[f"{statistic}_high"]) == made.interval(statistic)
    near = [0.91 - 1, 0.9, 0.89]
    assert row["bias"] == pytest.approx(np.mean(near))
    assert row["nearby"] == 3
    assert set(row) == {"threshold", *names, "bias", "nearby"} | {
        f"{statistic}{end}" for statistic in STATISTICS for end in ("", "_low", "_high")
    }


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
