from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from metric_functions import smece, smece_exact
from pairs import counted

from srs_eval.metrics.smece import lattice_of, residual_field


@pytest.fixture(scope="module")
def reference_smece():
    # The reference implementation imports plotting libraries that use what pandas deprecates.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from relplot.metrics import smECE
    return smECE


@pytest.mark.parametrize("n", [1, 2, 30, 1000, 20_000])
@pytest.mark.parametrize("calibrated", [True, False])
def test_it_equals_the_reference_implementation(reference_smece, n, calibrated):
    rng = np.random.default_rng(n)
    p = rng.beta(9, 1.2, n)
    recalled = rng.random(n) < (p if calibrated else 0.6)
    assert smece(p, recalled) == pytest.approx(reference_smece(p, recalled * 1.0), abs=1e-13)


def test_it_equals_the_reference_where_the_kernel_falls_between_nodes(reference_smece):
    rng = np.random.default_rng(5)
    p = rng.beta(9, 1.2, 400_000)
    recalled = rng.random(len(p)) < p
    value, sigma = lattice_of(counted(p, recalled))
    assert sigma * 1024 <= 3
    assert value == pytest.approx(reference_smece(p, recalled * 1.0), abs=1e-13)


def direct(p, recalled, sigma):
    """Sum the kernel over mirror images of every prediction, on a fine grid."""
    t = np.linspace(0, 1, 4001)
    residual = np.zeros_like(t)
    for image in range(-6, 7):
        for mirrored in (2 * image + p, 2 * image - p):
            distance = (t[:, None] - mirrored) / sigma
            residual += np.exp(-0.5 * distance**2) @ (p - recalled)
    residual /= len(p) * sigma * math.sqrt(2 * math.pi)
    return np.trapezoid(np.abs(residual), t)


@pytest.mark.parametrize("sigma", [0.02, 0.1, 0.5, 1.0])
def test_the_cosine_series_equals_mirror_images(weyl, sigma):
    p, recalled = weyl(60, 0.2)
    p[:2] = 0, 1
    assert residual_field(counted(p, recalled)).absolute_integral(sigma) == pytest.approx(
        direct(p, recalled, sigma), abs=3e-6
    )


def test_the_exact_number_is_its_own_bandwidth(weyl):
    p, recalled = weyl(2000, 0.05)
    value = smece_exact(p, recalled)
    assert residual_field(counted(p, recalled)).absolute_integral(value) == pytest.approx(
        value, abs=1e-9
    )


def test_bandwidths_may_be_as_small_as_numbers_get():
    p, recalled = [0.0, 0.0, 1.0, 5e-324], [False, False, False, True]
    assert smece_exact(p, recalled) == pytest.approx(smece_exact([0, 0, 1, 0], recalled))
