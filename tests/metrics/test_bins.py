from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metric_functions import rmse_bins

from srs_eval.metrics.bins import (
    FSRS_OPTIMIZER,
    SHORTEST_INTERVAL,
    WIKI_2024,
    RmseBins,
    RmseBinsDebiased,
    RmseBinsFloor,
)
from srs_eval.metrics.score import score


def by_loop(p, recalled, elapsed_days, nth_review, lapses, bases):
    """Group the reviews in a dictionary, with the published formulas written out."""
    (a, interval), (b, reviews), (c, failed) = bases
    groups = {}
    for row, (days, nth, again) in enumerate(zip(elapsed_days, nth_review, lapses, strict=True)):
        days = max(days, 1e-6)
        key = (
            round(a * interval ** math.floor(math.log(days, interval)), 2),
            round(b * reviews ** math.floor(math.log(nth, reviews))),
            round(c * failed ** math.floor(math.log(again, failed))) if again else 0,
        )
        groups.setdefault(key, []).append(row)
    total = sum(
        len(rows) * (p[rows].mean() - recalled[rows].mean()) ** 2 for rows in groups.values()
    )
    return math.sqrt(total / len(p))


FSRS = ((2.48, 3.62), (1.99, 1.89), (1.65, 1.73))
WIKI = ((2.48, 2.57), (1.52, 1.58), (1.4, 1.48))


@pytest.mark.parametrize(("bases", "options"), [(FSRS, {}), (WIKI, {"scales": WIKI_2024})])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint32])
@pytest.mark.parametrize("largest", [100, 2**16, 9.9e8])
def test_it_equals_the_formulas_in_a_loop(bases, options, dtype, largest):
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
    got = rmse_bins(p, recalled, *facts, **options)
    assert got == pytest.approx(by_loop(p, recalled, *facts, bases), abs=1e-13)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.floats(0, 1e6) | st.integers(0, 10**8).map(float), min_size=1, max_size=20),
    st.sampled_from([FSRS_OPTIMIZER, WIKI_2024]),
)
def test_codes_number_rounded_values_in_their_order(values, scales):
    for scale in (scales.interval, scales.reviews, scales.lapses):
        given_values = np.maximum(np.array(values), SHORTEST_INTERVAL)
        rounded, codes = scale.rounded(given_values), scale.codes(np.array(values))
        assert codes.min() >= 0
        assert codes.max() < scale.count
        order = np.argsort(rounded, kind="stable")
        steps, gaps = np.diff(codes[order]), np.diff(rounded[order])
        assert ((steps == 0) == (gaps == 0)).all()
        assert (steps >= 0).all()


def test_the_floor_is_the_error_of_outcomes_drawn_from_the_predictions(one_user):
    predictions = one_user(n=2000)
    rng = np.random.default_rng(0)
    drawn = [
        RmseBins()(replace(predictions, recalled=rng.random(2000) < predictions.p)) ** 2
        for _ in range(300)
    ]
    floor = RmseBinsFloor()(predictions)
    assert floor == pytest.approx(math.sqrt(np.mean(drawn)), rel=0.03)
    biased = replace(predictions, p=predictions.p / 2)
    excess = RmseBins()(biased) ** 2 - RmseBinsFloor()(biased) ** 2
    assert RmseBinsDebiased()(biased) == pytest.approx(math.sqrt(excess))
    for fact in ("elapsed_days", "nth_review", "lapses"):
        assert math.isnan(RmseBinsDebiased()(replace(biased, **{fact: None})))


def test_better_than_chance_is_cut_off_at_nothing():
    """Two reviews in a bin, one of them recalled, as predicted: chance would do worse."""
    two = np.ones(2)
    scores = score([0.5, 0.5], [1, 0], elapsed_days=two, nth_review=two, lapses=two)
    assert scores["rmse_bins"] == scores["rmse_bins_debiased"] == 0
    assert scores["rmse_bins_floor"] == pytest.approx(math.sqrt(0.25 / 2))
