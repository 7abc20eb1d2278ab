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
    recalled, n = REVIEWS.recalled[FOLD.train].sum(), len(FOLD.train)
    expected = (recalled + prior) / (n + 2 * prior)
    model = Average(prior).fit(REVIEWS, FOLD.train, RNG)
    np.testing.assert_allclose(model.predict(REVIEWS, FOLD.test), expected, rtol=1e-15)
    assert model.parameters == pytest.approx((expected,))
    flat = Constant(p=0.8).fit(REVIEWS, FOLD.train, RNG)
    curve = flat.predict_at(REVIEWS, FOLD.test[:2], np.array([[1.0, 2.0], [3.0, 4.0]]))
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


def test_every_number_of_days_reviews_and_lapses_has_the_bin_of_the_metric():
    # One card per number of days, reviewed over and over, always failed.
    days = [1, 3, 4, 13, 14, 47, 48, 171, 172, 621, 622, 2250, 2251, 8151]
    card, elapsed = (np.repeat(each, 128) for each in (np.arange(len(days)), days))
    nth = np.arange(len(card)) % 128 + 1
    reviews = log_of(card, np.ones(len(card)), np.where(nth == 1, 0.0, elapsed))
    rows = np.flatnonzero(nth > 1)
    elapsed, lapses = np.maximum(elapsed[rows], SHORTEST_INTERVAL), nth[rows] - 2
    scales = FSRS_OPTIMIZER
    failed = np.where(lapses > 0, 1 + scales.lapses.codes(np.maximum(lapses, 1)), 0)
    codes = 100 * scales.interval.codes(elapsed) + scales.reviews.codes(nth[rows])
    assert same_groups(bins_of(reviews, rows), 100 * codes + failed)
