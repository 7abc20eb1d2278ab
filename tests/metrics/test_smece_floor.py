from __future__ import annotations

import math

import numpy as np
import pytest
from cases import rest_nightly
from metric_functions import smece_exact

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


def simulated(p, rng, draws):
    levels = [smece_exact(p, rng.random(len(p)) < p) for _ in range(draws)]
    return np.mean(levels), np.std(levels) / math.sqrt(draws)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", rest_nightly([1000, 50, 20_000]))
def test_it_is_the_mean_over_simulated_outcomes(shape, n):
    rng = np.random.default_rng(n)
    p = SHAPES[shape](rng, n)
    mean, error = simulated(p, rng, 60)
    assert smece_floor(p) == pytest.approx(mean, abs=3 * error, rel=0.05)


@pytest.mark.parametrize(("value", "n"), [(0.9, 100), (0.5, 3), (0.99, 10_000)])
def test_equal_predictions_leave_the_noise_of_their_mean(value, n):
    expected = math.sqrt(2 * value * (1 - value) / (math.pi * n))
    assert smece_floor([value] * n) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("p", [5e-324, 1e-310, 2.2e-308, 1e-160])
@pytest.mark.parametrize("n", [1, 2, 30])
def test_equal_predictions_near_the_smallest_number_have_the_noise_of_their_mean(p, n):
    expected = math.sqrt(2 / math.pi) * math.sqrt(p) * math.sqrt(1 - p) / math.sqrt(n)
    assert smece_floor([p] * n) == pytest.approx(expected, rel=1e-9, abs=0)


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
