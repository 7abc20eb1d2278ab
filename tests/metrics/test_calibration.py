"""What holds of measures of calibration beyond what other libraries say of them."""

import math
from dataclasses import replace

import numpy as np
import pytest
from metric_functions import METRIC, of_outcomes, rmse_bins, scored, smece_exact

from srs_eval.metrics.bins import FSRS_OPTIMIZER, WIKI_2024
from srs_eval.metrics.reliability import reliability_of
from srs_eval.metrics.smooth_ece import NODES, absolute_integral, cosine_series, onto_grid
from srs_eval.metrics.tally import tally


def test_the_smooth_calibration_error_is_its_own_bandwidth(weyl):
    p, recalled = weyl(60, 0.2)
    p[:2] = 0, 1
    value = smece_exact(p, recalled)
    series = cosine_series(onto_grid(p, (p - recalled) / len(p), NODES + 1))
    assert absolute_integral(series, value) == pytest.approx(value, abs=1e-9)
    p, recalled = [0.0, 0.0, 1.0, 5e-324], [0, 0, 0, 1]  # the smallest bandwidth there is
    assert smece_exact(p, recalled) == pytest.approx(smece_exact([0, 0, 1, 0], recalled))


def by_loop(p, recalled, elapsed_days, nth_review, lapses, constants):
    """Group the reviews in a dictionary, with the published formulas written out."""
    (a, interval), (b, reviews), (c, failed) = constants
    groups = {}
    for row, (days, nth, again) in enumerate(zip(elapsed_days, nth_review, lapses, strict=True)):
        days = max(days, 1e-6)
        key = (
            round(a * interval ** math.floor(math.log(days, interval)), 2),
            round(b * reviews ** math.floor(math.log(nth, reviews))),
            round(c * failed ** math.floor(math.log(again, failed))) if again else 0,
        )
        groups.setdefault(key, []).append(row)
    squares = (len(rows) * (p[rows] - recalled[rows]).mean() ** 2 for rows in groups.values())
    return math.sqrt(sum(squares) / len(p))


PUBLISHED = (
    (((2.48, 3.62), (1.99, 1.89), (1.65, 1.73)), FSRS_OPTIMIZER),
    (((2.48, 2.57), (1.52, 1.58), (1.4, 1.48)), WIKI_2024),
)


@pytest.mark.parametrize(("constants", "scales"), PUBLISHED, ids=["optimizer", "wiki"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint32])
@pytest.mark.parametrize("largest", [100, 2**16, 9.9e8])
def test_rmse_bins_equals_the_formulas_in_a_loop(constants, scales, dtype, largest):
    """Facts just below what is refused have bins, too."""
    rng = np.random.default_rng(1)
    n = 2000
    p = rng.beta(9, 1.2, n)
    recalled = rng.random(n) < 0.85
    facts = [np.floor(largest ** rng.random(n)).astype(dtype) for _ in range(3)]
    facts[0][:9] = facts[2][:800] = 0
    for number, column in enumerate(facts):
        for other in facts:
            other[1000 + 40 * number :][:40] = 1
        column[1000 + 40 * number :][:40] = np.tile([largest / 2, largest], 20)
    if np.dtype(dtype).kind == "f":
        facts[0][9:99] *= rng.random(90)
    expected = by_loop(p, recalled, *facts, constants)
    assert rmse_bins(p, recalled, *facts, scales=scales) == pytest.approx(expected, abs=1e-13)


def test_the_floor_is_the_error_of_outcomes_drawn_from_the_predictions(one_user):
    predictions = one_user(n=2000)
    rng = np.random.default_rng(0)
    error, floor = METRIC["rmse_bins"], METRIC["rmse_bins_floor"]
    drawn = [
        scored(error, replace(predictions, recalled=rng.random(2000) < predictions.p)) ** 2
        for _ in range(300)
    ]
    assert scored(floor, predictions) == pytest.approx(math.sqrt(np.mean(drawn)), rel=0.03)
    for fact in ("elapsed_days", "nth_review", "lapses"):
        assert math.isnan(scored(error, replace(predictions, **{fact: None})))


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


def test_a_curve_is_the_kernel_regression_of_outcomes_with_its_error_and_floor(weyl):
    """Without mirror images: at 0.8 none of them are near."""
    p, recalled = weyl(3000, 0.1)
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
