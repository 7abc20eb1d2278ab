"""Recalibration by every answer: what it learns, and from when on."""

from dataclasses import replace

import numpy as np
import pytest
from random_logs import log_of
from scipy.special import expit, logit

from srs_eval.algorithms.baselines import Constant
from srs_eval.algorithms.combined.blend import Blend, Recalibration
from srs_eval.algorithms.half_life.hlr import Hlr
from srs_eval.algorithms.moving_average import MovingAverage
from srs_eval.checks.toy_log import trial_task
from srs_eval.nouns import Learned, has_curve
from srs_eval.protocol.refit import SrsBenchmarkRefit

TASK = trial_task(same_day=False)
REVIEWS, FOLD = TASK.reviews, TASK.folds[0]


def fitted(algorithm, reviews=REVIEWS):
    return algorithm.fit(reviews, FOLD.train, np.random.default_rng(0))


def plain(p, recalled, day, *, half_life, prior, every):
    """The same recursion in words of matrices: state before each review, and after the last."""
    kept = 0.5 ** (1 / half_life)
    w, start = np.array([0.0, 1.0]), np.array([0.0, 1.0])
    information = np.zeros((2, 2))
    shown, states = [], [w]
    for n in range(len(p)):
        if every == "review" or n == 0 or day[n] != day[n - 1]:
            shown.append(w)
        else:
            shown.append(shown[-1])
        x = np.array([1.0, logit(p[n])])
        q = expit(w @ x)
        information = kept * information + q * (1 - q) * np.outer(x, x)
        gradient = (q - recalled[n]) * x + (1 - kept) * prior * (w - start)
        w = w - np.linalg.solve(information + prior * np.eye(2), gradient)
        w = np.array([w[0], max(w[1], 0.05)])
        states.append(w)
    return np.array(shown), states[-1]


@pytest.mark.parametrize("every", ["day", "review"])
@pytest.mark.parametrize("half_life", [3.0, 1000.0])
def test_states_are_those_of_the_recursion(every, half_life):
    rng = np.random.default_rng(5)
    p, recalled = rng.uniform(0.05, 0.99, 300), rng.random(300) < 0.6
    day = np.sort(rng.integers(0, 40, 300))
    begin = Recalibration(half_life, 7.0, every)
    shown, after = begin.follow(p, recalled, np.ones(300, bool), day)
    expected, last = plain(p, recalled, day, half_life=half_life, prior=7.0, every=every)
    np.testing.assert_allclose(shown, expected, atol=1e-10)
    np.testing.assert_allclose(after.state[:2], last, atol=1e-10)


def test_the_slope_never_turns_round():
    rng = np.random.default_rng(1)
    z = rng.normal(0.0, 2.0, 2000)
    _, after = Recalibration(1e6, 1.0, "review").follow(
        expit(z), rng.random(2000) < expit(-z), np.ones(2000, bool), np.arange(2000)
    )
    assert 0.05 <= after.state[1] < 0.06


def test_it_begins_with_the_latest_training_reviews_predicted_by_a_fit_to_the_others():
    begin = len(FOLD.train) - len(FOLD.train) // 4
    earlier = Hlr().fit(REVIEWS, FOLD.train[:begin], np.random.default_rng(0))
    later = FOLD.train[begin:]
    _, expected = plain(
        earlier.predict(REVIEWS, later),
        REVIEWS.recalled[later],
        REVIEWS.day[later],
        half_life=1000.0,
        prior=20.0,
        every="day",
    )
    np.testing.assert_allclose(fitted(Blend(Hlr())).parameters[:2], expected, atol=1e-10)
    assert fitted(Blend(Hlr(), held_out=0)).parameters[:2] == (0.0, 1.0)


def test_refits_go_on_where_the_fit_before_ended(make_log):
    task = SrsBenchmarkRefit(refits=6)(make_log(cards=80), same_day=False)
    blend, (first, second, *_) = Blend(Hlr()), task.folds
    rng = np.random.default_rng(0)
    before = blend.fit(task.reviews, first.train, rng)
    after = blend.refit(task.reviews, second.train, rng, before)
    p, recalled = before.model.predict(task.reviews, first.test), task.reviews.recalled[first.test]
    every = np.ones(len(p), bool)
    _, expected = before.recalibration.follow(p, recalled, every, task.reviews.day[first.test])
    assert after.recalibration == expected
    assert after.until == second.train[-1]
    assert before.parameters[:2] != after.parameters[:2]


def test_it_says_of_itself_what_the_other_algorithm_says():
    blend = Blend(Hlr())
    assert (blend.same_day, blend.when, blend.sees_truth) == (False, "day_before", False)
    assert Blend(Hlr(), every="review").when == "at_review"
    assert Blend(MovingAverage()).when == "at_review"
    model = fitted(blend)
    assert model.parameters[2:] == model.model.parameters
    assert np.isnan(model.learned.standard_errors[:2]).all()
    assert model.learned.standard_errors[2:] == model.model.learned.standard_errors
    assert not has_curve(fitted(Blend(MovingAverage())))
    assert fitted(Blend(Constant())).learned == Learned()


@pytest.mark.parametrize(("days_alike", "expected"), [(15, 50.0), (10_000, 1000.0)])
def test_the_half_life_is_the_one_that_predicts_the_held_out_reviews_best(days_alike, expected):
    n = 4000
    rng = np.random.default_rng(1)
    level = np.where(np.arange(n) // (10 * days_alike) % 2, -1.0, 1.0)
    rows = np.arange(n)
    reviews = log_of(rows % 10, np.where(rng.random(n) < expit(level), 3, 1), np.ones(n))
    reviews = replace(reviews, day=rows // 10)
    model = Blend(Constant(0.5)).fit(reviews, rows, np.random.default_rng(0))
    assert model.recalibration.half_life == expected
    again = Blend(Constant(0.5)).refit(reviews, rows, np.random.default_rng(0), model)
    assert again.recalibration == model.recalibration
