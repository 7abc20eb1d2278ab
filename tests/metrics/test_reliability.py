from __future__ import annotations

import math

import numpy as np
import pytest
from metric_functions import smece_exact
from pairs import counted

from srs_eval.metrics.reliability import reliability_of


@pytest.mark.slow
def test_the_band_surrounds_the_curve_and_narrows_with_data(weyl):
    small, large = (reliability_of(counted(*weyl(n, 0.05)), seed=1) for n in (300, 30_000))
    middle = np.searchsorted(large.p_grid, 0.8)
    for curve in (small, large):
        assert curve.lo[middle] < curve.observed[middle] < curve.hi[middle]
        defined = ~np.isnan(curve.observed)
        assert (np.isnan(curve.lo) == ~defined).all()
        assert (curve.lo[defined] <= curve.hi[defined]).all()
        assert curve.lo[defined].min() >= 0
        assert curve.hi[defined].max() <= 1
    width = [curve.hi[middle] - curve.lo[middle] for curve in (small, large)]
    assert width[1] < width[0] / 3


@pytest.mark.slow
def test_the_half_width_matches_resampling_the_reviews():
    rng = np.random.default_rng(0)
    p = rng.beta(9, 1.2, 3000)
    recalled = rng.random(3000) < p - 0.05 * (p > 0.9)
    rows = rng.integers(0, 3000, (150, 3000))
    errors = np.array([smece_exact(p[drawn], recalled[drawn]) for drawn in rows])
    estimate = smece_exact(p, recalled)
    below, above = np.quantile(errors, [0.025, 0.975])
    expected = max(above - estimate, estimate - below)
    assert reliability_of(counted(p, recalled)).half_width == pytest.approx(expected, rel=0.25)


@pytest.mark.slow
def test_calibrated_curves_keep_to_their_band_and_miscalibrated_ones_leave_it(weyl):
    rng = np.random.default_rng(2)
    p = rng.beta(9, 1.2, 3000)
    inside = []
    for _ in range(6):
        curve = reliability_of(counted(p, rng.random(3000) < p), resamples=40)
        dense = curve.density > 1
        held = (curve.observed >= curve.null_lo) & (curve.observed <= curve.null_hi)
        inside.append(held[dense].mean())
    # The bandwidth is chosen on the same outcomes, so 95 % is only about right.
    assert 0.88 < np.mean(inside) <= 1
    curve = reliability_of(counted(*weyl(10_000, 0.1)), resamples=40)
    biased = curve.p_grid > 0.95
    assert (curve.observed < curve.null_lo)[biased].all()


@pytest.mark.slow
def test_the_band_under_calibration_has_the_width_that_theory_gives():
    rng = np.random.default_rng(3)
    p = rng.beta(9, 1.2, 20_000)
    curve = reliability_of(counted(p, rng.random(20_000) < p - 0.05), resamples=300)
    at = np.searchsorted(curve.p_grid, 0.8)
    kernel = np.exp(-0.5 * ((p - curve.p_grid[at]) / curve.sigma) ** 2)
    kernel += np.exp(-0.5 * ((2 - p - curve.p_grid[at]) / curve.sigma) ** 2)
    mean = (kernel * p).sum() / kernel.sum()
    spread = math.sqrt((kernel**2 * p * (1 - p)).sum()) / kernel.sum()
    assert (curve.null_lo[at] + curve.null_hi[at]) / 2 == pytest.approx(mean, abs=0.15 * spread)
    assert curve.null_hi[at] - curve.null_lo[at] == pytest.approx(2 * 1.96 * spread, rel=0.1)
