"""Scores of forgetting curves, against a plain loop over pairs of times and golden numbers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import isotonic_regression

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
)
from srs_eval.nouns import Curves
from srs_eval.nouns.predictions import select

METRICS = {
    **{"weak": Temporal("violation"), "strict": Temporal("strict"), "flat": Temporal("flat")},
    **{"tolerant": Temporal("tolerant"), "mean_rise": TemporalRise(), "drop": TemporalDrop()},
    **{"isotonic_l1": TemporalIsotonic(), "max_rise": TemporalMaxRise()},
    **{"collapsed_at_0_01": TemporalCollapsed(), "permutation": TemporalPermutation()},
}


def curves(p, times=None, weight=None):
    p = np.atleast_2d(p)
    n, k = p.shape
    times = np.arange(1.0, k + 1) if times is None else np.asarray(times)
    weight = np.full(k, 1 / k) if weight is None else np.asarray(weight)
    each = np.arange(n)
    rows = (np.broadcast_to(column, p.shape) for column in (times, weight))
    return Curves(each * 0, each * 0, each, *rows, p)


def by_loop(times, weight, p, own, recalled):
    """Score one curve pair by pair; `own` is the prediction of its review."""
    k = range(len(times))
    pairs = [(weight[i] * weight[j], p[j] - p[i], times[i]) for i in k for j in k if i < j]
    total = sum(mass for mass, _, _ in pairs)

    def share(is_one):
        return sum(mass for mass, rise, earlier in pairs if is_one(rise, earlier)) / total

    def loss(q):
        return -math.log(min(max(q if recalled else 1 - q, 2.0**-52), 1 - 2.0**-52))

    short, long = (np.argmax(np.cumsum(weight) >= at - 1e-12) for at in (0.05, 0.95))
    fitted = isotonic_regression(p, weights=weight, increasing=False).x
    return {
        "weak": share(lambda rise, _: rise >= -1e-9),
        "strict": share(lambda rise, _: rise > 1e-9),
        "flat": share(lambda rise, _: abs(rise) <= 1e-9),
        "tolerant": share(lambda rise, earlier: rise > 0.02 * math.exp(-earlier) + 1e-9),
        "mean_rise": sum(mass * max(rise, 0) for mass, rise, _ in pairs) / total,
        "max_rise": max(0, *(rise for _, rise, _ in pairs)),
        "isotonic_l1": weight @ np.abs(p - fitted),
        "drop": p[short] - p[long],
        "collapsed_at_0_01": float(p[short] - p[long] < 0.01),
        "permutation": sum(w * loss(q) for w, q in zip(weight, p, strict=True)) - loss(own),
    }


@settings(max_examples=40, deadline=None)
@given(
    st.lists(arrays(np.float64, 7, elements=st.floats(0, 1, width=32)), min_size=1, max_size=3),
    st.lists(st.integers(1, 50), min_size=7, max_size=7).map(np.array),
    st.lists(st.sampled_from([0.0, 0.3, 1.0, 40.0]), min_size=7, max_size=7),
    st.integers(0, 5),
    st.booleans(),
)
def test_every_score_of_a_curve_is_that_of_a_plain_loop(some, counts, gaps, missing, recalled):
    """Times that are missing, at the end, do not count."""
    times = np.cumsum(np.array(gaps) + 0.01)
    last = len(times) - missing
    weight = np.where(np.arange(7) < last, counts, 0) / counts[:last].sum()
    p = np.where(weight > 0, some, np.nan)
    given_curves = curves(p, np.where(weight > 0, times, np.nan), weight)
    reviews = bare_predictions(np.linspace(0, 1, len(p)), np.full(len(p), recalled))
    for row, own in enumerate(reviews.p):
        known = times[:last], weight[:last], p[row, :last]
        for name, expected in by_loop(*known, own, recalled).items():
            found = METRICS[name].per_curve(given_curves, reviews)[row]
            assert found == pytest.approx(expected, abs=1e-12), name


def test_single_precision_noise_counts_as_flat():
    noisy = np.array([0.9, 0.9000003, 0.8999999], np.float32)
    assert temporal_rates(curves(noisy), "flat")[0] == 1
    assert temporal_rates(curves(noisy.astype(np.float64)), "flat")[0] == 0
    assert temporal_rates(curves(noisy.astype(np.float64)), "flat", atol=1e-5)[0] == 1
    falls = curves([[1.0, 0.75], [0.75, 0.75]])
    assert TemporalCollapsed(0.25).per_curve(falls, None).tolist() == [0, 1]


def test_curves_at_one_time_and_models_without_curves_have_no_number(one_user):
    single = curves([[0.9, np.nan], [0.8, np.nan]], [1, np.nan], [1, 0])
    reviews = select(replace(one_user(), curves=None), np.arange(2))
    for metric in METRICS.values():
        assert np.isnan(metric.per_curve(single, reviews)).all()
        for some in (single, None, curves(np.empty((0, 4)))):
            assert math.isnan(metric(replace(one_user(), curves=some)))


@pytest.mark.parametrize(
    ("given_days", "days", "shares"),
    [
        ([5, 1, 1, 1, 30], [1, 5, 30], [0.6, 0.2, 0.2]),
        ([-1, np.nan, 4, 0], [0, 4], [0.5, 0.5]),
        ([], [], []),
        ([1, 1, 1, 2, 3, 4, 5, 9], [1, 3, 5], [1 / 3, 1 / 3, 1 / 3]),
    ],
)
def test_times_are_intervals_that_occur_with_the_shares_they_stand_for(given_days, days, shares):
    times, weights = sample_elapsed(given_days, k=3)
    assert times.tolist() == days
    assert weights == pytest.approx(shares)
    intervals = np.floor(np.random.default_rng(0).exponential(30, 5000))
    times, weights = sample_elapsed(intervals)
    assert 2 <= len(times) <= 16
    assert set(times) <= set(intervals)
    assert times @ weights == pytest.approx(intervals.mean(), rel=0.1)


def test_golden_checks_of_curves(cases):
    inputs, expected = cases["C24"]["inputs"], cases["C24"]["expected"]
    counts = inputs["interval_counts"]
    weight = np.array(list(counts.values()), float) / sum(counts.values())
    for shape, curve in inputs["curves"].items():
        one = curves(list(curve.values()), [float(time) for time in counts], weight)
        for name in METRICS.keys() & expected[shape].keys():
            wanted = pytest.approx(float(expected[shape][name]))
            assert METRICS[name].per_curve(one, None)[0] == wanted, name


def test_a_curve_is_scored_with_its_own_review_known_by_user_fold_and_row(one_user):
    predictions = one_user(n=300, curves=30)
    shuffled = select(predictions, np.random.default_rng(2).permutation(300))
    rows = reviews_of_curves(shuffled)
    assert np.array_equal(shuffled.row[rows], shuffled.curves.row)
    for metric in METRICS.values():
        assert metric(shuffled) == pytest.approx(metric(predictions), abs=1e-12)
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
