from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srs_eval.metrics.calibration import mbe
from srs_eval.metrics.calibration_tests import (
    EcceKs,
    EcceKuiper,
    SpiegelhalterZ,
    cumulative_differences,
    cumulative_of,
    spiegelhalter_p_value,
    spiegelhalter_z,
    z_of,
)
from srs_eval.metrics.tally import Tally, tally

probabilities = st.one_of(st.floats(0, 1), st.integers(0, 8).map(lambda k: k / 8))
reviews = st.lists(st.tuples(probabilities, st.booleans()), min_size=1, max_size=40)
quick = settings(max_examples=60, deadline=None)


def columns(pairs):
    p, recalled = zip(*pairs, strict=True)
    return np.array(p), np.array(recalled)


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
    found = cumulative_differences(p, recalled)
    # It leaves out the start at 0, which matters by less than a review.
    kuiper, ks = (
        mapie.kuiper_statistic(recalled, p),
        mapie.kolmogorov_smirnov_statistic(recalled, p),
    )
    assert found.kuiper / found.scale == pytest.approx(kuiper, abs=1 / 2000 / found.scale)
    assert found.ks / found.scale == pytest.approx(ks, abs=1e-6)
    assert found.kuiper_p == pytest.approx(mapie.kuiper_p_value(recalled, p), abs=0.05)
    assert found.ks_p == pytest.approx(mapie.kolmogorov_smirnov_p_value(recalled, p), abs=1e-6)
    z = mapie.spiegelhalter_statistic(recalled, p)
    assert spiegelhalter_z(p, recalled) == pytest.approx(z, abs=1e-9)
    # Its own p-value looks at one side only.
    one_sided = mapie.spiegelhalter_p_value(recalled, p)
    both = 2 * min(one_sided, 1 - one_sided)
    assert spiegelhalter_p_value(p, recalled) == pytest.approx(both, abs=1e-9)


@pytest.mark.parametrize("x", [0.2, 0.5, 0.9, 0.999999, 1.0, 1.000001, 1.5, 2.5, 4.0])
def test_tails_are_those_of_brownian_motion(mapie, x):
    from srs_eval.metrics.calibration_tests import _absolute_tail, _range_tail

    assert _absolute_tail(x) == pytest.approx(1 - mapie.kolmogorov_smirnov_cdf(x), abs=1e-12)
    assert _range_tail(x) == pytest.approx(1 - mapie.kuiper_cdf(x), abs=1e-12)


def test_far_tails_keep_their_digits():
    from srs_eval.metrics.calibration_tests import _absolute_tail, _range_tail

    # Twice the chance that the end is that far off, on either side; the range twice again.
    beyond = math.erfc(10 / math.sqrt(2)) / 2
    assert _absolute_tail(10.0) == pytest.approx(4 * beyond, rel=1e-12)
    assert _range_tail(10.0) == pytest.approx(8 * beyond, rel=1e-12)


def test_true_predictions_fail_as_often_as_the_level_says():
    rng = np.random.default_rng(0)
    p = rng.beta(5, 1.5, 2000)
    drawn = [rng.random(len(p)) < p for _ in range(400)]
    found = [cumulative_differences(p, recalled) for recalled in drawn]
    for values in (
        [one.kuiper_p for one in found],
        [one.ks_p for one in found],
        [spiegelhalter_p_value(p, recalled) for recalled in drawn],
    ):
        assert 0.02 <= np.mean(np.array(values) < 0.05) <= 0.08
    z = [spiegelhalter_z(p, recalled) for recalled in drawn]
    assert np.std(z) == pytest.approx(1, abs=0.1)


@quick
@given(reviews)
def test_the_range_is_between_the_largest_difference_and_twice_it(pairs):
    p, recalled = columns(pairs)
    found = cumulative_differences(p, recalled)
    assert abs(mbe(p, recalled)) - 1e-12 <= found.ks <= found.kuiper + 1e-15
    assert found.kuiper <= 2 * found.ks + 1e-15
    assert found.kuiper <= 1 + 1e-12
    for chance in (found.kuiper_p, found.ks_p):
        assert math.isnan(chance) or 0 <= chance <= 1


@quick
@given(reviews, st.randoms())
def test_the_order_of_equal_predictions_does_not_matter(pairs, random):
    shuffled = random.sample(pairs, len(pairs))
    here, there = (
        cumulative_differences(*columns(pairs)),
        cumulative_differences(*columns(shuffled)),
    )
    assert here == there
    assert spiegelhalter_z(*columns(pairs)) == pytest.approx(
        spiegelhalter_z(*columns(shuffled)), nan_ok=True
    )


@quick
@given(reviews)
def test_seeing_recalls_as_lapses_changes_none_but_the_order(pairs):
    p, recalled = columns(pairs)
    p = (p * 64).round() / 64
    here, there = cumulative_differences(p, recalled), cumulative_differences(1 - p, ~recalled)
    assert there.kuiper == pytest.approx(here.kuiper, abs=1e-12)
    z = spiegelhalter_z(1 - p, ~recalled)
    assert z == pytest.approx(spiegelhalter_z(p, recalled), abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("p", [[0.0, 1.0], [1.0, 1.0]])
def test_certain_predictions_leave_nothing_to_chance(p):
    found = cumulative_differences(p, [0, 1])
    assert found.kuiper == abs(p[0]) / 2
    assert found.scale == 0
    assert np.isnan([found.kuiper_p, found.ks_p, spiegelhalter_z(p, [0, 1])]).all()


def test_one_half_has_no_z_because_the_brier_score_is_certain():
    assert math.isnan(spiegelhalter_z([0.5, 0.5], [1, 0]))
    assert cumulative_differences([0.5, 0.5], [1, 0]).kuiper_p == 1


def test_weights_count_as_reviews():
    p = np.array([0.2, 0.6, 0.9])
    halves = Tally(p, np.array([0.5, 1.0, 0.5]), np.array([0.0, 1.5, 4.5]))
    whole = Tally(p, 2 * halves.forgotten, 2 * halves.recalled)
    assert cumulative_of(halves).kuiper == pytest.approx(cumulative_of(whole).kuiper)
    assert z_of(halves) * math.sqrt(2) == pytest.approx(z_of(whole))


def test_the_metrics_are_the_numbers(one_user):
    predictions = one_user()
    found = cumulative_of(tally(predictions.p, predictions.recalled))
    assert EcceKuiper()(predictions) == found.kuiper
    assert EcceKs()(predictions) == found.ks
    z = spiegelhalter_z(predictions.p, predictions.recalled)
    assert SpiegelhalterZ()(predictions) == z


def test_nothing_is_nan():
    assert math.isnan(spiegelhalter_z([], []))
    assert math.isnan(spiegelhalter_p_value([], []))
    assert math.isnan(cumulative_differences([], []).kuiper)
