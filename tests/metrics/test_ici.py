from __future__ import annotations

import warnings

import numpy as np
import pytest

from srs_eval.metrics.ici import CELLS, Ici, IciQuantile


def shared(p, recalled):
    """Outcomes, equal predictions sharing their mean one."""
    _, tie, size = np.unique(p, return_inverse=True, return_counts=True)
    return (np.bincount(tie, recalled) / size)[tie]


def quantiles_of(p, recalled):
    """Distances that a half, nine tenths and all of the reviews do not exceed."""
    return [IciQuantile(share).of_outcomes(p, recalled) for share in (0.5, 0.9, 1.0)]


@pytest.fixture(scope="module")
def reference_gaps():
    from statsmodels.nonparametric.smoothers_lowess import lowess as reference

    def gaps(p, recalled):
        delta = 0.01 * (p.max() - p.min())
        with warnings.catch_warnings():
            # Where a window has no width it divides by 0, before it takes the mean.
            warnings.simplefilter("ignore")
            observed = reference(
                shared(p, recalled), p, frac=2 / 3, it=0, delta=delta, return_sorted=False
            )
        return np.abs(observed - p)

    return gaps


@pytest.mark.parametrize("n", [30, 300, 3000])
@pytest.mark.parametrize("decimals", [16, 2, 1])
@pytest.mark.parametrize("spread", [(9, 1.2), (1, 1), (15, 1.5)])
def test_it_agrees_with_statsmodels(reference_gaps, n, decimals, spread):
    rng = np.random.default_rng(n)
    p = rng.beta(*spread, n).round(decimals)
    recalled = rng.random(n) < p
    expected = reference_gaps(p, recalled)
    assert Ici().of_outcomes(p, recalled) == pytest.approx(expected.mean(), abs=1e-6)
    quantiles = [*np.quantile(expected, [0.5, 0.9]), expected.max()]
    assert quantiles_of(p, recalled) == pytest.approx(quantiles, abs=1e-5)


def test_many_predictions_are_joined_without_a_trace(reference_gaps):
    rng = np.random.default_rng(0)
    p = rng.beta(9, 1.2, 2 * CELLS)
    recalled = rng.random(len(p)) < p - 0.03
    expected = reference_gaps(p, recalled)
    assert Ici().of_outcomes(p, recalled) == pytest.approx(expected.mean(), abs=1e-5)
    found = quantiles_of(p, recalled)[:2]
    assert found == pytest.approx(np.quantile(expected, [0.5, 0.9]), abs=5e-5)


@pytest.mark.parametrize("share", [0.5, 0.61, 0.7, 0.8, 0.95])
def test_calibrated_predictions_have_a_small_distance_however_many_are_equal(share):
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p = np.where(rng.random(1000) < share, 0.9, rng.beta(8, 2, 1000))
        found.append(Ici().of_outcomes(p, rng.random(1000) < p))
    # Statsmodels' lowess has means of 0.02 to 0.09 from 0.61 on, and up to 0.65
    assert np.mean(found) < 0.018
    assert np.max(found) < 0.04
