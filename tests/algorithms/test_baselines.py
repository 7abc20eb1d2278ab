import math
from dataclasses import replace

import numpy as np
import pytest
from random_logs import log_of

from srs_eval.algorithms.baselines import Average, Constant
from srs_eval.algorithms.moving_average import MovingAverage
from srs_eval.algorithms.oracle import Oracle
from srs_eval.algorithms.rmse_bins_exploit import bins_of
from srs_eval.checks.toy_log import trial_task
from srs_eval.errors import FitSkipped
from srs_eval.metrics.bins import FSRS_OPTIMIZER, SHORTEST_INTERVAL

TASK = trial_task(same_day=False)
REVIEWS, FOLD = TASK.reviews, TASK.folds[0]
RNG = np.random.default_rng(0)


@pytest.mark.parametrize("prior", [0, 0.5, 3.5])
def test_the_average_is_that_of_training_rows_and_counts_reviews_that_never_were(prior):
    recalled, n = prior, 2 * prior
    for row in FOLD.train:
        recalled += bool(REVIEWS.recalled[row])
        n += 1
    model = Average(prior).fit(REVIEWS, FOLD.train, RNG)
    np.testing.assert_allclose(model.predict(REVIEWS, FOLD.test), recalled / n, rtol=1e-15)
    assert model.parameters == pytest.approx((recalled / n,))


def test_a_constant_has_a_flat_curve():
    model = Constant(p=0.8).fit(REVIEWS, FOLD.train, RNG)
    curve = model.predict_at(REVIEWS, FOLD.test[:2], np.array([[1.0, 2.0], [3.0, 4.0]]))
    np.testing.assert_array_equal(curve, np.full((2, 2), 0.8))


def followed(rows, start=1.2, rate=0.3):
    level, p = start, []
    for row in rows:
        p.append(1 / (1 + math.exp(-level)))
        level += rate * (REVIEWS.recalled[row] - p[-1])
    return p


def test_the_moving_average_follows_training_rows_and_goes_on_through_the_test_by_time():
    model = MovingAverage().fit(REVIEWS, FOLD.train, RNG)
    expected = followed([*FOLD.train, *FOLD.test])[len(FOLD.train) :]
    found = model.predict(REVIEWS, FOLD.test[::-1])
    np.testing.assert_allclose(found[::-1], expected, rtol=1e-12)


def test_the_oracle_knows_what_the_outcomes_were_drawn_from_and_skips_real_users():
    model = Oracle().fit(REVIEWS, FOLD.train, RNG)
    np.testing.assert_array_equal(model.predict(REVIEWS, FOLD.test), REVIEWS.truth[FOLD.test])
    with pytest.raises(FitSkipped):
        Oracle().fit(replace(REVIEWS, truth=None), FOLD.train, RNG)


def same_groups(one, other):
    """Whether two ways to number things put the same things together."""
    pairs = set(zip(one.tolist(), other.tolist(), strict=True))
    return len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


def bins_of_the_metric(days, nth_review, lapses):
    scales = FSRS_OPTIMIZER
    failed = np.where(lapses > 0, 1 + scales.lapses.codes(np.maximum(lapses, 1)), 0)
    days = np.maximum(days, SHORTEST_INTERVAL)
    return scales.interval.codes(days) * 10_000 + scales.reviews.codes(nth_review) * 100 + failed


def test_every_number_of_days_reviews_and_lapses_has_the_bin_of_the_metric():
    # One card per number of days, reviewed over and over, always failed.
    days = [1, 3, 4, 13, 14, 47, 48, 171, 172, 621, 622, 2250, 2251, 8151]
    n = 128
    card = np.repeat(np.arange(len(days)), n)
    elapsed = np.repeat(days, n)
    first = np.arange(len(card)) % n == 0
    nth = np.arange(len(card)) % n + 1
    reviews = log_of(card, np.ones(len(card)), np.where(first, 0.0, elapsed))
    rows = np.flatnonzero(~first)
    metric = bins_of_the_metric(elapsed[rows], nth[rows], nth[rows] - 2)
    assert same_groups(bins_of(reviews, rows), metric)
