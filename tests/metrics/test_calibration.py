"""What holds of measures of calibration beyond what other libraries say of them."""

import math

import numpy as np
import pytest
from metric_functions import of_outcomes, smece_exact

from srs_eval.metrics.reliability import reliability_of
from srs_eval.metrics.smooth_ece import NODES, absolute_integral, cosine_series, onto_grid
from srs_eval.metrics.tally import tally


def too_high(n, shift):
    """Predictions from 0.5 on that are too high, by `shift`, above 0.9."""
    rng = np.random.default_rng(n)
    p = rng.uniform(0.5, 1, n)
    return p, rng.random(n) < p - shift * (p > 0.9)


def test_the_smooth_calibration_error_is_its_own_bandwidth():
    p, recalled = too_high(60, 0.2)
    p[:2] = 0, 1
    value = smece_exact(p, recalled)
    series = cosine_series(onto_grid(p, (p - recalled) / len(p), NODES + 1))
    assert absolute_integral(series, value) == pytest.approx(value, abs=1e-9)
    p, recalled = [0.0, 0.0, 1.0, 5e-324], [0, 0, 0, 1]  # the smallest bandwidth there is
    assert smece_exact(p, recalled) == pytest.approx(smece_exact([0, 0, 1, 0], recalled))


def smece_floor(p):
    return of_outcomes("smece_floor", p, np.ones(len(p), bool))


@pytest.mark.parametrize("shape", [(9, 1.2), (1, 1), (30, 0.5)])
@pytest.mark.parametrize("n", [50, 1000])
def test_the_smooth_floor_solves_its_definition_and_is_the_mean_over_simulated_outcomes(shape, n):
    rng = np.random.default_rng(n)
    p = rng.beta(*shape, n)
    sigma, t = smece_floor(p), np.linspace(0, 1, 2001)[:, None]
    images = (sign * p + 2 * k for sign in (1, -1) for k in range(-2, 3))  # behind the walls
    kernel = sum(np.exp(-0.5 * ((t - at) / sigma) ** 2) for at in images)
    kernel /= sigma * math.sqrt(2 * math.pi)
    size = np.sqrt(2 / math.pi * (kernel**2 @ (p * (1 - p)))) / n
    assert np.trapezoid(size, t[:, 0]) == pytest.approx(sigma, rel=1e-3)
    levels = [smece_exact(p, rng.random(n) < p) for _ in range(60)]
    error = np.std(levels) / math.sqrt(60)
    assert sigma == pytest.approx(np.mean(levels), abs=3 * error, rel=0.05)


def test_a_curve_is_the_kernel_regression_of_outcomes_with_its_error_and_floor():
    """Without mirror images: at 0.8 none of them are near."""
    p, recalled = too_high(3000, 0.1)
    curve = reliability_of(tally(p, recalled), resamples=40, points=1001)
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
        assert 0 <= low[defined].min() <= high[defined].max() <= 1
    assert curve.lo[at] < curve.observed[at] < curve.hi[at]
    assert 0.1 * curve.smece < curve.half_width < curve.smece
    assert (curve.observed < curve.null_lo)[curve.p_grid > 0.95].all()
    once = reliability_of(tally(p, recalled), resamples=1)
    np.testing.assert_array_equal(once.lo, once.hi)
