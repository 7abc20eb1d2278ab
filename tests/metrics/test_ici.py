from __future__ import annotations

import math

import numpy as np
import pytest

from srs_eval.metrics.calibration import mbe
from srs_eval.metrics.ici import ici, lowess


@pytest.mark.parametrize(
    ("decimals", "expected"), [(16, 0.022027134178901883), (2, 0.021799918409916366)]
)
def test_it_agrees_with_statsmodels(weyl, decimals, expected):
    # lowess(recalled, p, frac=2/3, it=0, delta=0.01 * range) of statsmodels 0.15.0
    p, recalled = weyl(1000, 0.05)
    assert ici(p.round(decimals), recalled) == pytest.approx(expected, abs=1e-6)


def test_constant_predictions_leave_the_mean_bias():
    p, recalled = [0.9] * 8, [1, 1, 1, 0, 1, 1, 0, 1]
    assert ici(p, recalled) == pytest.approx(abs(mbe(p, recalled)))


def test_a_straight_line_is_fitted_exactly():
    p = np.sort(np.random.default_rng(0).random(300))
    assert lowess(p, 0.2 + 0.5 * p) == pytest.approx(0.2 + 0.5 * p, abs=1e-9)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_very_few_reviews_have_a_number(n):
    assert 0 <= ici(np.linspace(0.2, 0.9, n), [True] * n) <= 1


def test_nothing_is_nan():
    assert math.isnan(ici([], []))
