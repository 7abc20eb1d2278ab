"""Bounds of scores by sums: all predictions keep within them, and forged scores do not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from srs_eval.metrics.calibration import EqualBinSums
from srs_eval.metrics.discrimination import Auc
from srs_eval.metrics.proper import SCORES
from srs_eval.metrics.sketch import bare_predictions
from srs_eval.metrics.threshold import ThresholdSums
from srs_eval.submit.bounds import LOG_LOSS_PER_SQUARE, auc_between, least_by_bins
from srs_eval.submit.sums import sums_of_user

THRESHOLDS = (0.7, 0.8, 0.9, 0.95)


def test_the_constant_is_the_smallest_ratio_of_the_losses_of_a_review() -> None:
    found = minimize_scalar(lambda x: -math.log1p(-x) / x**2, bounds=(0.1, 0.99), method="bounded")
    assert pytest.approx(found.fun, abs=1e-9) == LOG_LOSS_PER_SQUARE
    assert pytest.approx(2.4554, abs=5e-5) == LOG_LOSS_PER_SQUARE


SHAPES: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "of any size": lambda rng, n: rng.random(n),
    "nearly certain": lambda rng, n: 1 - 10.0 ** rng.uniform(-18, 0, n),
    "0 and 1": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "edges of bins": lambda rng, n: rng.integers(0, 11, n) / 10,
    "nearly 0": lambda rng, n: 10.0 ** rng.uniform(-18, -1, n),
    "of 32 bits": lambda rng, n: rng.beta(8, 2, n).astype(np.float32),
    "one number": lambda rng, n: np.full(n, rng.choice([0.0, 0.3, 0.55, 0.9, 1.0])),
}


def least(bins: Any) -> Any:
    """Bounds of one user's scores by sums in bins."""
    found = least_by_bins(*bins.reshape(1, -1, 2).transpose(2, 0, 1))
    return [each[0] for each in found]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("outcomes", ["as predicted", "at random"])
def test_no_predictions_pass_the_bounds(shape: str, outcomes: str) -> None:
    rng = np.random.default_rng(len(shape) + 100 * len(outcomes))
    for n in (1, 2, 7, 50, 3_000):
        p = SHAPES[shape](rng, n)
        recalled = rng.random(n) < (p if outcomes == "as predicted" else rng.random())
        predictions = bare_predictions(p, recalled)
        at = [ThresholdSums(threshold) for threshold in THRESHOLDS]
        scores, *rest = sums_of_user([SCORES, EqualBinSums(10), EqualBinSums(1), *at], predictions)
        _, hits, log_loss, squares, *_ = scores
        assert log_loss >= LOG_LOSS_PER_SQUARE * squares - 1e-9 * n
        for sums in rest[:2]:
            least_loss, least_squares, possible = least(sums)
            assert possible
            assert log_loss >= least_loss - 1e-7 * n
            assert squares >= least_squares - 1e-7 * n
        tables = [(table[:1], table[1:2]) for table in rest[2:]]
        low, high, ordered = auc_between(tables, np.array([hits]), np.array([float(n)]))
        auc = Auc().of_outcomes(p, recalled)
        assert ordered.all()
        assert np.isnan(auc) == np.isnan(low[0])
        assert np.isnan(auc) or low[0] - 1e-9 <= auc <= high[0] + 1e-9


@pytest.mark.parametrize(
    ("p", "recalled"),
    [
        # In each bin all of one outcome, at one prediction: no bound can be higher.
        ([0.15, 0.15, 0.72, 0.97], [False, False, True, True]),
        # A bin half of each outcome: at best its recalled reviews are above, and others below.
        ([0.5, 0.6 - 1e-12], [False, True]),
    ],
)
def test_the_bounds_are_reached(p: list[float], recalled: list[bool]) -> None:
    predictions = bare_predictions(np.array(p), np.array(recalled))
    scores, bins = sums_of_user([SCORES, EqualBinSums(10)], predictions)
    least_loss, least_squares, _ = least(bins)
    assert least_loss == pytest.approx(scores[2], abs=1e-4)
    assert least_squares == pytest.approx(scores[3], abs=1e-9)


def test_the_area_lies_between_the_staircases_of_the_tables() -> None:
    # 3 of 4 recalled at 0.9 or more, and 1 of 4 others.
    low, high, possible = auc_between(
        [(np.array([4.0]), np.array([3.0]))], np.array([4.0]), np.array([8.0])
    )
    assert (low[0], high[0]) == (9 / 16, 15 / 16)
    assert possible.all()
    falling = [(np.array([4.0]), np.array([3.0])), (np.array([5.0]), np.array([3.0]))]
    assert not auc_between(falling, np.array([4.0]), np.array([8.0]))[2].any()
