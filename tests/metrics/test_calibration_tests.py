from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from pairs import columns, counted, quick, reviews

from srs_eval.metrics.calibration_tests import SpiegelhalterZ, cumulative_of


@pytest.fixture(scope="module")
def mapie():
    from mapie.metrics import calibration

    return calibration


@pytest.mark.parametrize("shift", [0.0, 0.02])
@pytest.mark.parametrize("seed", range(4))
def test_they_agree_with_mapie(mapie, shift, seed):
    rng = np.random.default_rng(seed)
    p = rng.beta(9, 1.2, 2000)
    recalled = rng.random(2000) < p - shift
    found = cumulative_of(counted(p, recalled))
    # It leaves out the start at 0, which matters by less than a review.
    kuiper, ks = (
        mapie.kuiper_statistic(recalled, p),
        mapie.kolmogorov_smirnov_statistic(recalled, p),
    )
    scale = math.sqrt((p * (1 - p)).sum()) / len(p)
    assert found.kuiper == pytest.approx(kuiper * scale, abs=1 / 2000)
    assert found.ks == pytest.approx(ks * scale, abs=1e-6 * scale)
    z = mapie.spiegelhalter_statistic(recalled, p)
    assert SpiegelhalterZ().of_outcomes(p, recalled) == pytest.approx(z, abs=1e-9)


@quick
@given(reviews)
def test_seeing_recalls_as_lapses_changes_none_but_the_order(pairs):
    p, recalled = columns(pairs)
    p = (p * 64).round() / 64
    here, there = cumulative_of(counted(p, recalled)), cumulative_of(counted(1 - p, ~recalled))
    assert there.kuiper == pytest.approx(here.kuiper, abs=1e-12)
    z = SpiegelhalterZ().of_outcomes(1 - p, ~recalled)
    assert z == pytest.approx(SpiegelhalterZ().of_outcomes(p, recalled), abs=1e-9, nan_ok=True)


def test_z_is_undefined_where_the_brier_score_is_certain():
    assert math.isnan(SpiegelhalterZ().of_outcomes([0.5, 0.5], [1, 0]))
    assert math.isnan(SpiegelhalterZ().of_outcomes([0.0, 1.0], [0, 1]))
