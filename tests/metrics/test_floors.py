"""Errors that true predictions have by chance alone: their floors, and bands of their curves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from cases import rest_nightly
from metric_functions import smece_exact
from pairs import counted

from srs_eval.metrics.reliability import reliability_of
from srs_eval.metrics.smece_floor import SmeceFloor, floor_of
from srs_eval.metrics.tally import Tally, tally


def smece_floor(p):
    return SmeceFloor().of_outcomes(p, np.ones(len(p), bool))


SHAPES = {
    "as of people": lambda rng, n: rng.beta(9, 1.2, n),
    "even": lambda rng, n: rng.random(n),
    "near the wall": lambda rng, n: rng.beta(30, 0.5, n),
    "a few": lambda rng, n: rng.choice([0.6, 0.8, 0.95], n),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", rest_nightly([1000, 50, 20_000]))
def test_the_floor_is_the_mean_over_simulated_outcomes(shape, n):
    rng = np.random.default_rng(n)
    p = SHAPES[shape](rng, n)
    levels = [smece_exact(p, rng.random(n) < p) for _ in range(60)]
    error = np.std(levels) / math.sqrt(60)
    assert smece_floor(p) == pytest.approx(np.mean(levels), abs=3 * error, rel=0.05)


@pytest.mark.parametrize("p", [0.9, 0.5, 5e-324, 2.2e-308, 1e-160])
@pytest.mark.parametrize("n", [1, 3, 100])
def test_equal_predictions_leave_the_noise_of_their_mean(p, n):
    """Also those near the smallest number; one review of 0.9 is too near to the end."""
    expected = math.sqrt(2 / math.pi) * math.sqrt(p) * math.sqrt(1 - p) / math.sqrt(n)
    if p < 0.1 or n == 100:
        assert smece_floor([p] * n) == pytest.approx(expected, rel=1e-9 if p < 0.1 else 1e-3, abs=0)


# Multiples of 2**-53, so that 1 - p is exact: 1 - 1e-17 would be 1, which has no noise.
@pytest.mark.slow
@pytest.mark.parametrize("n", rest_nightly([30, 5, 2, 1]))
@pytest.mark.parametrize("largest", rest_nightly([2**50, 2**20, 2**53], 2))
def test_both_ends_are_alike(n, largest):
    p = np.random.default_rng(n).integers(0, largest, n, endpoint=True) / 2**53
    assert smece_floor(1 - p) == pytest.approx(smece_floor(p), rel=1e-4, abs=1e-9)


def test_cells_of_predictions_do_as_well_as_each():
    rng = np.random.default_rng(0)
    p = rng.beta(9, 1.2, 30_000)
    counted = tally(p, rng.random(len(p)) < p)
    assert floor_of(counted.at_most(1000)) == pytest.approx(floor_of(counted), rel=2e-3)
    halved = Tally(counted.p, counted.forgotten / 2, counted.recalled / 2)
    assert floor_of(halved) == pytest.approx(2 ** (1 / 3) * floor_of(counted), rel=0.05)


def test_a_curve_is_the_kernel_regression_of_outcomes_with_its_error_and_floor(weyl):
    """Without mirror images: at 0.8 none of them are near."""
    p, recalled = weyl(3000, 0.1)
    curve = reliability_of(counted(p, recalled), resamples=40, points=1001)
    assert (curve.smece, curve.n) == (pytest.approx(smece_exact(p, recalled)), 3000)
    assert (curve.sigma, curve.smece_floor) == (curve.smece, pytest.approx(smece_floor(p)))
    at = np.searchsorted(curve.p_grid, 0.8)
    kernel = np.exp(-0.5 * ((p - curve.p_grid[at]) / curve.sigma) ** 2)
    assert curve.observed[at] == pytest.approx((kernel @ recalled) / kernel.sum(), abs=1e-3)
    height = kernel.sum() / len(p) / (curve.sigma * math.sqrt(2 * math.pi))
    assert curve.density[at] == pytest.approx(height, rel=1e-3)
    defined = ~np.isnan(curve.observed)
    nearby = np.exp(-0.5 * ((p[:, None] - curve.p_grid) / curve.sigma) ** 2).sum(axis=0)
    assert (defined == (nearby >= 0.5)).all()
    for low, high in ((curve.lo, curve.hi), (curve.null_lo, curve.null_hi)):
        assert (np.isnan(low) == ~defined).all()
        assert (low[defined] <= high[defined]).all()
        assert low[defined].min() >= 0
        assert high[defined].max() <= 1
    assert curve.lo[at] < curve.observed[at] < curve.hi[at]
    assert 0.1 * curve.smece < curve.half_width < curve.smece
    assert (curve.observed < curve.null_lo)[curve.p_grid > 0.95].all()
    assert math.isnan(reliability_of(counted([], [])).smece)


@pytest.mark.slow
def test_bands_and_the_error_have_the_widths_that_theory_and_resampling_give():
    rng = np.random.default_rng(3)
    p = rng.beta(9, 1.2, 20_000)
    recalled = rng.random(20_000) < p - 0.05
    curve = reliability_of(counted(p, recalled), resamples=300)
    at = np.searchsorted(curve.p_grid, 0.8)
    kernel = np.exp(-0.5 * ((p - curve.p_grid[at]) / curve.sigma) ** 2)
    kernel += np.exp(-0.5 * ((2 - p - curve.p_grid[at]) / curve.sigma) ** 2)
    mean = (kernel * p).sum() / kernel.sum()
    spread = math.sqrt((kernel**2 * p * (1 - p)).sum()) / kernel.sum()
    assert (curve.null_lo[at] + curve.null_hi[at]) / 2 == pytest.approx(mean, abs=0.15 * spread)
    assert curve.null_hi[at] - curve.null_lo[at] == pytest.approx(2 * 1.96 * spread, rel=0.1)
    spread = math.sqrt((kernel**2 * (recalled - curve.observed[at]) ** 2).sum()) / kernel.sum()
    assert curve.hi[at] - curve.lo[at] == pytest.approx(2 * 1.96 * spread, rel=0.1)
    rows = rng.integers(0, 20_000, (150, 20_000))
    errors = np.array([smece_exact(p[drawn], recalled[drawn]) for drawn in rows])
    expected = np.abs(np.quantile(errors, [0.025, 0.975]) - smece_exact(p, recalled)).max()
    assert curve.half_width == pytest.approx(expected, rel=0.25)
