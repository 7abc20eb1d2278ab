from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from srs_eval.errors import ConfigError
from srs_eval.metrics.temporal import (
    Temporal,
    TemporalCollapsed,
    sample_elapsed,
    temporal_rates,
)
from srs_eval.nouns import Curves


def curves(p, times=None, weight=None):
    p = np.atleast_2d(p)
    n, k = p.shape
    times = np.arange(1.0, k + 1) if times is None else np.asarray(times)
    weight = np.full(k, 1 / k) if weight is None else np.asarray(weight)
    each = np.arange(n)
    rows = (np.broadcast_to(column, p.shape) for column in (times, weight))
    return Curves(each * 0, each * 0, each, *rows, p)


def test_weak_is_strict_plus_flat():
    shapes = curves(np.random.default_rng(0).random((50, 9)).round(1))
    weak, strict, flat = (temporal_rates(shapes, kind) for kind in ("violation", "strict", "flat"))
    assert weak == pytest.approx(strict + flat)
    assert flat.max() > 0


def test_it_equals_drawing_pairs_of_times():
    rng = np.random.default_rng(3)
    p, weight = rng.random(6), rng.dirichlet(np.ones(6))
    draws = rng.choice(6, (200_000, 2), p=weight)
    draws = np.sort(draws[draws[:, 0] != draws[:, 1]], axis=1)
    drawn = (p[draws[:, 1]] >= p[draws[:, 0]]).mean()
    assert temporal_rates(curves(p, weight=weight))[0] == pytest.approx(drawn, abs=0.006)


def test_single_precision_noise_counts_as_flat():
    noisy = np.array([0.9, 0.9000003, 0.8999999], np.float32)
    assert temporal_rates(curves(noisy), "flat")[0] == 1
    assert temporal_rates(curves(noisy.astype(np.float64)), "flat")[0] == 0
    assert temporal_rates(curves(noisy.astype(np.float64)), "flat", atol=1e-5)[0] == 1


def test_missing_times_do_not_count():
    padded = curves([0.9, 0.8, 0.95, np.nan], [1, 2, 5, np.nan], [0.5, 0.25, 0.25, 0])
    whole = curves([0.9, 0.8, 0.95], [1, 2, 5], [0.5, 0.25, 0.25])
    for kind in ("violation", "strict", "flat", "tolerant"):
        assert temporal_rates(padded, kind) == pytest.approx(temporal_rates(whole, kind))
    collapsed = TemporalCollapsed()
    assert collapsed.per_curve(padded) == pytest.approx(collapsed.per_curve(whole))


def test_curves_at_one_time_are_left_out(one_user):
    single = curves([[0.9, np.nan], [0.8, np.nan]], [1, np.nan], [1, 0])
    assert np.isnan(temporal_rates(single)).all()
    assert math.isnan(Temporal()(replace(one_user(), curves=single)))
    assert math.isnan(TemporalCollapsed()(replace(one_user(), curves=single)))


def test_models_without_curves_have_no_number(one_user):
    predictions = replace(one_user(), curves=None)
    assert math.isnan(Temporal()(predictions))
    assert math.isnan(TemporalCollapsed()(predictions))


def test_unknown_kinds_are_refused():
    with pytest.raises(ConfigError, match="'weak' is not one of violation, strict"):
        Temporal("weak")


def test_few_different_intervals_are_all_kept_with_their_shares():
    times, weights = sample_elapsed([5, 1, 1, 1, 30], k=3)
    assert times.tolist() == [1, 5, 30]
    assert weights == pytest.approx([0.6, 0.2, 0.2])


def test_many_intervals_are_thinned_to_values_that_occur():
    intervals = np.floor(np.random.default_rng(0).exponential(30, 5000))
    times, weights = sample_elapsed(intervals, k=16)
    assert 2 <= len(times) <= 16
    assert np.all(np.diff(times) > 0)
    assert set(times) <= set(intervals)
    assert weights.sum() == pytest.approx(1)
    assert times @ weights == pytest.approx(intervals.mean(), rel=0.1)


def test_intervals_that_are_none_are_left_out():
    times, weights = sample_elapsed([-1, np.nan, 4])
    assert (times.tolist(), weights.tolist()) == ([4], [1])
    times, weights = sample_elapsed([])
    assert len(times) == len(weights) == 0
