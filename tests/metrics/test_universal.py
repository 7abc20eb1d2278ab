from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srs_eval.errors import ConfigError, ScoreError
from srs_eval.metrics.bins import rmse_bins_by_p
from srs_eval.metrics.calibration import mbe
from srs_eval.metrics.universal import universal_metric, universal_metric_plus

unit = st.floats(0, 1)
reviews = st.lists(st.tuples(unit, unit, st.booleans()), min_size=1, max_size=40)


@pytest.fixture
def two_models(weyl):
    k = np.arange(1, 401)
    p, recalled = weyl(400, 0.05)
    return p, np.clip(p - 0.1 + 0.2 * (k * 0.7548776662466927 % 1), 0, 1), recalled


@pytest.mark.parametrize("bins", ["log20", "round10"])
def test_the_golden_case(cases, two_models, bins):
    expected = cases["C21"]["expected"][f"um_{bins}"]
    one, other, recalled = two_models
    by_other = universal_metric(one, other, recalled, bins=bins)
    by_one = universal_metric(other, one, recalled, bins=bins)
    assert (by_one, by_other) == pytest.approx((expected["B_by_A"], expected["A_by_B"]), abs=1e-12)


def test_the_golden_case_of_um_plus(cases, two_models):
    expected = cases["C21"]["expected"]["um_plus"]
    one, other, recalled = two_models
    assert universal_metric_plus(one, other, recalled) == pytest.approx(expected["A"], abs=1e-12)
    assert universal_metric_plus(other, one, recalled) == pytest.approx(expected["B"], abs=1e-12)


def test_a_referee_of_oneself_is_the_old_rmse_bins(two_models):
    p, _, recalled = two_models
    assert universal_metric(p, p, recalled) == pytest.approx(rmse_bins_by_p(p, recalled))


@settings(max_examples=60, deadline=None)
@given(reviews)
def test_numbers_lie_between_the_bias_and_one(triples):
    player, referee, recalled = (np.array(column) for column in zip(*triples, strict=True))
    bias = abs(mbe(player, recalled))
    for value in (
        universal_metric(player, referee, recalled),
        universal_metric(player, referee, recalled, bins="round10"),
        universal_metric_plus(player, referee, recalled),
    ):
        assert bias - 1e-9 <= value <= 1


def test_um_plus_against_oneself_is_the_bias():
    p, recalled = [0.9, 0.2, 0.6], [1, 1, 0]
    assert universal_metric_plus(p, p, recalled) == pytest.approx(abs(mbe(p, recalled)))


def test_the_precision_of_the_container_does_not_matter():
    p = np.array([0.9, 0.25, 0.65, 1.0], np.float32)
    recalled = [1, 0, 1, 1]
    for function in (universal_metric, universal_metric_plus):
        wide = function(p.astype(float), p[::-1].astype(float), recalled)
        assert function(p, p[::-1], recalled) == pytest.approx(wide, abs=1e-12)


def test_models_of_other_reviews_are_refused():
    with pytest.raises(ScoreError, match=r"recalled has shape \(2,\), but p has \(1,\)"):
        universal_metric([0.5, 0.5], [0.5], [1, 0])
    with pytest.raises(ScoreError):
        universal_metric_plus([0.5, 0.5], [0.5], [1, 0])


def test_unknown_bins_are_refused():
    with pytest.raises(ConfigError, match="log20 or round10, not 'tenths'"):
        universal_metric([0.5], [0.5], [1], bins="tenths")


def test_nothing_is_nan():
    assert math.isnan(universal_metric([], [], []))
    assert math.isnan(universal_metric_plus([], [], []))
