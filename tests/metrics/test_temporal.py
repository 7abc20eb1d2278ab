from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from metric_functions import log_loss

from srs_eval.metrics.curve_rows import reviews_of_curves
from srs_eval.metrics.sketch import bare_predictions
from srs_eval.metrics.temporal import (
    Temporal,
    TemporalCollapsed,
    sample_elapsed,
    temporal_rates,
)
from srs_eval.metrics.temporal_magnitude import (
    TemporalDrop,
    TemporalIsotonic,
    TemporalMaxRise,
    TemporalPermutation,
    TemporalRise,
    falling_fit,
)
from srs_eval.nouns import Curves
from srs_eval.nouns.predictions import select


def permuted_losses(curves, p, recalled):
    return TemporalPermutation().per_curve(curves, bare_predictions(p, recalled))


KINDS = {"weak": "violation", "strict": "strict", "flat": "flat", "tolerant": "tolerant"}
MAGNITUDES = {
    "mean_rise": TemporalRise(),
    "isotonic_l1": TemporalIsotonic(),
    "max_rise": TemporalMaxRise(),
    "drop": TemporalDrop(),
}
KIND_METRICS = [Temporal(kind) for kind in KINDS.values()]
METRICS = (*KIND_METRICS, *MAGNITUDES.values(), TemporalCollapsed(), TemporalPermutation())


def curves(p, times=None, weight=None):
    p = np.atleast_2d(p)
    n, k = p.shape
    times = np.arange(1.0, k + 1) if times is None else np.asarray(times)
    weight = np.full(k, 1 / k) if weight is None else np.asarray(weight)
    each = np.arange(n)
    rows = (np.broadcast_to(column, p.shape) for column in (times, weight))
    return Curves(each * 0, each * 0, each, *rows, p)


def test_single_precision_noise_counts_as_flat():
    noisy = np.array([0.9, 0.9000003, 0.8999999], np.float32)
    assert temporal_rates(curves(noisy), "flat")[0] == 1
    assert temporal_rates(curves(noisy.astype(np.float64)), "flat")[0] == 0
    assert temporal_rates(curves(noisy.astype(np.float64)), "flat", atol=1e-5)[0] == 1


def test_a_curve_has_collapsed_if_it_falls_by_less_than_the_drop():
    falls = curves([[1.0, 0.75], [0.75, 0.75]])
    assert TemporalCollapsed(0.25).per_curve(falls, None).tolist() == [0, 1]


def test_missing_times_do_not_count():
    padded = curves([0.9, 0.8, 0.95, np.nan], [1, 2, 5, np.nan], [0.5, 0.25, 0.25, 0])
    whole = curves([0.9, 0.8, 0.95], [1, 2, 5], [0.5, 0.25, 0.25])
    for kind in ("violation", "strict", "flat", "tolerant"):
        assert temporal_rates(padded, kind) == pytest.approx(temporal_rates(whole, kind))
    for magnitude in MAGNITUDES.values():
        assert magnitude.per_curve(padded, None) == pytest.approx(magnitude.per_curve(whole, None))
    p, recalled = np.array([0.8]), np.array([True])
    assert permuted_losses(padded, p, recalled) == pytest.approx(
        permuted_losses(whole, p, recalled)
    )


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_curves_at_one_time_and_models_without_curves_have_no_number(metric, one_user):
    single = curves([[0.9, np.nan], [0.8, np.nan]], [1, np.nan], [1, 0])
    reviews = select(replace(one_user(), curves=None), np.arange(2))
    assert np.isnan(metric.per_curve(single, reviews)).all()
    for some in (single, None, curves(np.empty((0, 4)))):
        assert math.isnan(metric(replace(one_user(), curves=some)))


@pytest.mark.parametrize(
    ("given_days", "days", "shares"),
    [
        ([5, 1, 1, 1, 30], [1, 5, 30], [0.6, 0.2, 0.2]),
        ([-1, np.nan, 4], [4], [1]),
        ([], [], []),
    ],
)
def test_few_different_intervals_are_all_kept_with_their_shares(given_days, days, shares):
    times, weights = sample_elapsed(given_days, k=3)
    assert times.tolist() == days
    assert weights == pytest.approx(shares)


def test_many_intervals_are_thinned_to_values_that_occur():
    intervals = np.floor(np.random.default_rng(0).exponential(30, 5000))
    times, weights = sample_elapsed(intervals, k=16)
    assert 2 <= len(times) <= 16
    assert np.all(np.diff(times) > 0)
    assert set(times) <= set(intervals)
    assert weights.sum() == pytest.approx(1)
    assert times @ weights == pytest.approx(intervals.mean(), rel=0.1)


def times_and_weights(case):
    """Intervals of a golden case, and how often each occurs."""
    counts = case["inputs"]["interval_counts"]
    weight = np.array(list(counts.values()), float)
    return [float(time) for time in counts], weight / weight.sum()


@pytest.mark.parametrize("shape", ["power", "flat", "rising", "vshape", "rounded", "bump"])
def test_golden_check_of_one_curve(cases, shape):
    expected = cases["C24"]["expected"][shape]
    p = np.array(list(cases["C24"]["inputs"]["curves"][shape].values()))
    times, weight = times_and_weights(cases["C24"])
    one = curves(p, times, weight)
    for name, kind in KINDS.items():
        assert temporal_rates(one, kind)[0] == pytest.approx(expected[name], abs=1e-12), name
    for name, magnitude in MAGNITUDES.items():
        assert magnitude.per_curve(one, None)[0] == pytest.approx(expected[name], abs=1e-12), name
    collapsed = TemporalCollapsed().per_curve(one, None)[0]
    assert bool(collapsed) is expected["collapsed_at_0_01"]
    assert (weight**2).sum() == pytest.approx(expected["p_tie"], abs=1e-12)


probabilities = arrays(np.float64, (3, 7), elements=st.floats(0, 1, width=32))
positive_weights = arrays(np.float64, 7, elements=st.integers(1, 50)).map(lambda w: w / w.sum())


@given(probabilities, positive_weights)
@settings(max_examples=25, deadline=None)
def test_reversing_a_curve_turns_its_rises_into_falls(p, weight):
    forth, back = curves(p, weight=weight), curves(p[:, ::-1], weight=weight[::-1])
    rises, falls = (temporal_rates(one, "strict", atol=0) for one in (forth, back))
    assert rises + falls + temporal_rates(forth, "flat", atol=0) == pytest.approx(1)
    difference = np.abs(p[:, :, None] - p[:, None, :])
    mass = weight[:, None] * weight * ~np.eye(7, dtype=bool)
    expected = (difference * mass).sum(axis=(1, 2)) / mass.sum()
    there, again = (TemporalRise().per_curve(curve, None) for curve in (forth, back))
    assert there + again == pytest.approx(expected, abs=1e-12)


@given(probabilities, positive_weights)
@settings(max_examples=25, deadline=None)
def test_the_falling_fit_is_that_of_the_pool_adjacent_violators(p, weight):
    from scipy.optimize import isotonic_regression

    fitted = falling_fit(p, np.tile(weight, (3, 1)))
    for curve, fit in zip(p, fitted, strict=True):
        oracle = isotonic_regression(curve, weights=weight, increasing=False).x
        assert fit == pytest.approx(oracle, abs=1e-12)


def test_exchanging_times_costs_what_drawing_them_costs():
    rng = np.random.default_rng(5)
    times, chosen = np.array([1.0, 5.0, 20.0]), rng.choice(3, 400, p=[0.5, 0.3, 0.2])
    strength = rng.exponential(30, 400)[:, None]
    p = np.exp(-times / strength)
    factual = p[np.arange(400), chosen]
    recalled = rng.random(400) < factual
    gained = permuted_losses(curves(p, times, [0.5, 0.3, 0.2]), factual, recalled)
    drawn = [
        log_loss(p[np.arange(400), rng.choice(3, 400, p=[0.5, 0.3, 0.2])], recalled)
        for _ in range(300)
    ]
    assert gained.mean() == pytest.approx(np.mean(drawn) - log_loss(factual, recalled), abs=0.02)
    assert gained.mean() > 0.1


def test_a_curve_is_scored_with_its_own_review(one_user):
    predictions = one_user(n=300, curves=30)
    shuffled = select(predictions, np.random.default_rng(2).permutation(300))
    rows = reviews_of_curves(shuffled)
    assert np.array_equal(shuffled.row[rows], shuffled.curves.row)
    for metric in METRICS:
        assert metric(shuffled) == pytest.approx(metric(predictions), abs=1e-12)


def test_reviews_are_told_apart_by_user_fold_and_row(one_user):
    one = one_user(n=8, curves=4)
    names = {
        "user": np.array([0, 0, 0, 0, 1, 1, 1, 1]),
        "fold": np.array([0, 0, 1, 1, 0, 0, 1, 1]),
        "row": np.array([3, 7, 3, 7, 3, 7, 3, 7]),
    }
    wanted = np.array([5, 2, 7, 2])
    keys = {name: column[wanted] for name, column in names.items()}
    predictions = replace(one, **names, curves=replace(one.curves, **keys))
    assert reviews_of_curves(predictions).tolist() == wanted.tolist()
