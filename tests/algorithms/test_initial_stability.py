"""The first step of training, against scipy, its own rules, and a published fit."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6, Fsrs6Equations
from srs_eval.algorithms.fsrs.initial_stability import _filled, _in_order, initial_stabilities
from srs_eval.protocol.srs_benchmark import SrsBenchmark

ROOT = Path(__file__).parents[2]
DEFAULTS = (0.4, 1.2, 3.2, 15.7)


def found(rows, *, smoothed=True, decay=0.5, mean_recall=0.85, shortest=0.01, defaults=DEFAULTS):
    rating, elapsed, recalled = (np.array(column) for column in zip(*rows, strict=True))
    return initial_stabilities(
        rating,
        elapsed,
        recalled,
        mean_recall=mean_recall,
        decay=decay,
        defaults=defaults,
        shortest=shortest,
        smoothed=smoothed,
    )


def plain_loss(stability, rows, default, decay, mean_recall, smoothed):
    """What the step minimises for one rating, as the specification puts it."""
    total = 0.0
    for day in sorted({elapsed for _, elapsed, _ in rows}):
        outcomes = [recalled for _, elapsed, recalled in rows if elapsed == day]
        n, q = len(outcomes), sum(outcomes) / len(outcomes)
        if smoothed:
            q = (q * n + mean_recall) / (n + 1)
        p = (1 + (0.9 ** (-1 / decay) - 1) * day / stability) ** -decay
        total -= n * (q * math.log(p) + (1 - q) * math.log1p(-p))
    return total + abs(stability - default) / 16 * smoothed


def slow_minimum(loss, shortest, longest=100.0, kink=None):
    """Look at many points, then let scipy go on around the best ones."""
    points = np.geomspace(shortest, longest, 400)
    if kink is not None:
        points = np.sort(np.append(points, kink))
    values = np.array([loss(point) for point in points])
    best = points[np.argmin(values)], values.min()
    for place in np.argsort(values)[:3]:
        low, high = points[max(place - 1, 0)], points[min(place + 1, len(points) - 1)]
        refined = minimize_scalar(loss, bounds=(low, high), options={"xatol": 1e-10 * low})
        best = min(best, (refined.x, refined.fun), key=lambda pair: pair[1])
    return best


WHOLE_DAYS = st.tuples(st.integers(1, 60).map(float), st.booleans())
FRACTIONS = st.tuples(st.floats(0.001, 60), st.booleans())


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(
    data=st.data(),
    smoothed=st.booleans(),
    rating=st.integers(1, 4),
    decay=st.sampled_from([1.0, 0.5, 0.1542]),
    mean_recall=st.floats(0.3, 0.99),
)
def test_no_stability_fits_better(data, smoothed, rating, decay, mean_recall):
    outcomes = data.draw(st.lists(WHOLE_DAYS if smoothed else FRACTIONS, min_size=1, max_size=30))
    rows = [(rating, *outcome) for outcome in outcomes]
    default = DEFAULTS[rating - 1]

    def loss(stability):
        return plain_loss(stability, rows, default, decay, mean_recall, smoothed)

    stability = found(rows, smoothed=smoothed, decay=decay, mean_recall=mean_recall)[rating - 1]
    slow, least = slow_minimum(loss, 0.01, kink=default if smoothed else None)
    assert 0.01 <= stability <= 100
    assert loss(stability) <= least + 1e-9 * (1 + least)
    # Where the loss is sharp around its minimum, only one stability has it.
    if min(loss(max(slow * 0.99, 0.01)), loss(min(slow * 1.01, 100))) > least + 1e-5:
        assert stability == pytest.approx(slow, rel=1e-4)


@pytest.mark.parametrize("decay", [1.0, 0.5, 0.1542])
def test_the_minimum_is_exact(decay):
    """At one elapsed time and without a default, the curve passes through the mean."""
    rows = [(3, 5.5, recalled) for recalled in [True] * 7 + [False] * 3]
    stability = found(rows, smoothed=False, decay=decay)[2]
    factor = 0.9 ** (-1 / decay) - 1
    assert stability == pytest.approx(factor * 5.5 / (0.7 ** (-1 / decay) - 1), rel=1e-11)


def test_of_two_local_minima_the_lower_one_is_found():
    """A small stability explains a failure; a strong default does without."""
    for failures in range(1, 40):
        rows = [(4, 1.0, False)] * failures + [(4, 1.0, True)] * 9

        def loss(stability, rows=rows):
            return plain_loss(stability, rows, 60.0, 0.5, 0.85, smoothed=True)

        stability = found(rows, defaults=(0.4, 1.2, 3.2, 60.0))[3]
        _, least = slow_minimum(loss, 0.01, kink=60.0)
        assert loss(stability) == pytest.approx(least, abs=1e-9)


def test_without_second_reviews_there_is_nothing_to_find():
    nothing = np.array([])
    four = initial_stabilities(
        nothing.astype(np.int64),
        nothing,
        nothing.astype(bool),
        mean_recall=math.nan,
        decay=0.5,
        defaults=DEFAULTS,
        shortest=0.01,
        smoothed=True,
    )
    assert four is None


def test_a_second_review_in_no_time_is_refused():
    with pytest.raises(ValueError, match=r"after 0\.0 days: all must be above 0"):
        found([(3, 0.0, True), (3, 1.0, True)])


@pytest.mark.parametrize("smoothed", [True, False])
def test_stabilities_stay_within_their_bounds(smoothed):
    never = found([(1, 1.0, False)] * 200, smoothed=smoothed, mean_recall=1e-3)
    always = found([(4, 60.0, True)] * 5000, smoothed=smoothed, mean_recall=0.999)
    assert min(never) == pytest.approx(0.01)
    assert max(always) == pytest.approx(100.0)


def test_the_order_of_rows_does_not_matter():
    rng = np.random.default_rng(3)
    rows = [
        (int(rating), float(day), bool(rng.random() < 0.8))
        for rating, day in zip(rng.integers(1, 5, 300), rng.integers(1, 20, 300), strict=True)
    ]
    mixed = [rows[place] for place in rng.permutation(len(rows))]
    np.testing.assert_allclose(found(mixed), found(rows), rtol=1e-9)


@pytest.mark.parametrize(
    ("given", "counts", "ordered"),
    [
        ((1, 2, 3, 4), (9, 9, 9, 9), (1, 2, 3, 4)),
        ((5, 2, 6, 7), (9, 8, 1, 1), (5, 5, 6, 7)),
        ((5, 2, 6, 7), (8, 9, 1, 1), (2, 2, 6, 7)),
        # Of equals, the value of the larger rating stays.
        ((5, 2, 6, 7), (8, 8, 1, 1), (2, 2, 6, 7)),
        # 1 and 2 give 5 5; then 2 and 3 give 3 3; then 1 and 3 give 3 to the rarer 1.
        ((5, 2, 3, 7), (5, 4, 6, 1), (3, 3, 3, 7)),
        # Neighbours first: 3 and 4 agree on 4, which then is fine with 2.
        ((1, 3, 9, 4), (1, 2, 3, 4), (1, 3, 4, 4)),
        # 3 moves 2 below 1, and then gives way to 1 itself: the rules leave that as it is.
        ((5, 6, 3, 7), (9, 1, 5, 1), (5, 3, 5, 7)),
        ((8, None, 9, 5), (9, 0, 3, 2), (8, None, 9, 9)),
        ((5, None, None, 2), (1, 0, 0, 3), (2, None, None, 2)),
    ],
)
def test_a_larger_first_rating_has_no_smaller_stability(given, counts, ordered):
    known = {rating: value for rating, value in enumerate(given, 1) if value is not None}
    kept = {rating: value for rating, value in enumerate(ordered, 1) if value is not None}
    assert _in_order(known, np.array([0, *counts])) == kept


A, B = 0.41, 0.54
C = A + B - A * B


def s1(s2, s3):
    return s2 ** (1 / A) * s3 ** (1 - 1 / A)


def s4(s2, s3):
    return s2 ** (1 - 1 / B) * s3 ** (1 / B)


S1, S2, S3, S4 = 0.6, 1.1, 2.7, 9.0
S2_OF_34 = S3 ** (1 / (1 - B)) * S4 ** (1 - 1 / (1 - B))
S3_OF_24 = S2 ** (1 - B) * S4**B
S2_OF_13 = S1**A * S3 ** (1 - A)
S3_OF_12 = S1 ** (1 - 1 / (1 - A)) * S2 ** (1 / (1 - A))


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({3: 6.4}, (0.8, 2.4, 6.4, 31.4)),
        ({1: 0.2}, (0.2, 0.6, 1.6, 7.85)),
        ({3: S3, 4: S4}, (s1(S2_OF_34, S3), S2_OF_34, S3, S4)),
        ({2: S2, 4: S4}, (s1(S2, S3_OF_24), S2, S3_OF_24, S4)),
        ({2: S2, 3: S3}, (s1(S2, S3), S2, S3, s4(S2, S3))),
        (
            {1: S1, 4: S4},
            (S1, S1 ** (A / C) * S4 ** (1 - A / C), S1 ** (1 - B / C) * S4 ** (B / C), S4),
        ),
        ({1: S1, 3: S3}, (S1, S2_OF_13, S3, s4(S2_OF_13, S3))),
        ({1: S1, 2: S2}, (S1, S2, S3_OF_12, s4(S2, S3_OF_12))),
        ({2: S2, 3: S3, 4: S4}, (s1(S2, S3), S2, S3, S4)),
        ({1: S1, 3: S3, 4: S4}, (S1, S2_OF_13, S3, S4)),
        ({1: S1, 2: S2, 4: S4}, (S1, S2, S3_OF_24, S4)),
        ({1: S1, 2: S2, 3: S3}, (S1, S2, S3, s4(S2, S3))),
        ({1: S1, 2: S2, 3: S3, 4: S4}, (S1, S2, S3, S4)),
    ],
    ids=lambda value: "".join(map(str, value)) if isinstance(value, dict) else "",
)
def test_ratings_that_nobody_gave_are_filled_in(known, expected):
    filled = _filled(known, DEFAULTS)
    np.testing.assert_allclose([filled[rating] for rating in (1, 2, 3, 4)], expected, rtol=1e-12)


def test_a_fit_to_one_real_user_equals_the_published_one(josh_log):
    task = SrsBenchmark()(josh_log, same_day=Fsrs6.same_day)
    reviews, defaults = task.reviews, Fsrs6Equations.parameters.defaults
    _, first, card = np.unique(reviews.card, return_index=True, return_inverse=True)
    golden = json.loads((ROOT / "tests/golden/training_josh.json").read_text())["algorithms"]
    (published,) = [entry for entry in golden if entry["algorithm"] == "FSRS-6 S0"]
    for fold, expected in zip(task.folds, published["folds"], strict=True):
        rows = fold.train[task.nth_review[fold.train] == 2]
        four = initial_stabilities(
            reviews.rating[first[card[rows]]],
            reviews.elapsed[rows],
            reviews.recalled[rows],
            mean_recall=float(np.mean(reviews.recalled[fold.train])),
            decay=defaults[20],
            defaults=defaults[:4],
            shortest=0.001,
            smoothed=True,
        )
        np.testing.assert_allclose(four, expected["parameters"][:4], rtol=0, atol=1e-4)
