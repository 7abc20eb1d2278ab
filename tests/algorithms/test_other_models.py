"""Models without recurrent equations: definitions in loops, derivatives, and fits."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import Bounds, minimize
from trial import FOLD, REVIEWS, fitted

from srs_eval.algorithms import history
from srs_eval.algorithms.baselines import Average, Constant, Oracle
from srs_eval.algorithms.features.log_odds import ActR, Dash, DashActR, DashMcm, FadingTraces
from srs_eval.algorithms.features.logistic import Logistic, on_same_day
from srs_eval.algorithms.half_life import HlrDuolingo, updated
from srs_eval.algorithms.history import history_of
from srs_eval.algorithms.online import MovingAverage
from srs_eval.engine.objective import standard_errors
from srs_eval.errors import FitSkipped
from srs_eval.protocol.fractional_days import SrsBenchmarkSecs

SECONDS = SrsBenchmarkSecs()(REVIEWS, same_day=True).reviews
KINDS = (ActR, Logistic, Dash, DashMcm, DashActR)
ROWS = FOLD.train


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reviews", [REVIEWS, SECONDS], ids=["days", "seconds"])
def test_log_odds_have_the_derivatives_they_say_however_many_are_held(monkeypatch, reviews, kind):
    log_odds = fitted(kind(fit="default")).log_odds
    w = np.array(log_odds.parameters.defaults)
    rows = np.flatnonzero(reviews.elapsed_days > 0)[::-13]
    at = log_odds.at(history_of(reviews), rows, reviews.elapsed[rows])
    z, slopes = at(w)
    for number, step in enumerate(1e-6 * np.eye(len(w))):
        expected = (at(w + step)[0] - at(w - step)[0]) / 2e-6
        np.testing.assert_allclose(slopes[:, number], expected, rtol=1e-5, atol=1e-5)
    monkeypatch.setattr(history, "HELD", 25)
    few = log_odds.at(history_of(reviews), rows, reviews.elapsed[rows])(w)
    np.testing.assert_allclose(few[0], z, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_ends_where_the_loss_is_least_and_knows_how_uncertain_that_is(kind):
    model, problem = fitted(kind()), kind().problem(REVIEWS)
    space, w = problem.space, np.array(model.parameters)
    centre = np.array(space.defaults)
    loss = kind().objective(problem, ROWS, centre)
    assert space.checked(model.parameters, "fitted") == model.parameters
    bounds = Bounds(space.lower, space.upper)
    other = minimize(lambda at: loss.fisher(at)[:2], centre, jac=True, bounds=bounds)
    assert loss.fisher(w).loss == pytest.approx(other.fun, rel=1e-5)
    assert loss.fisher(w).loss < loss.fisher(centre).loss
    errors = standard_errors(loss.fisher(w).information, w, space)
    np.testing.assert_allclose(model.learned.standard_errors, errors, rtol=1e-6)


@pytest.mark.parametrize(("first", "nothing"), [(65, True), (64, False)])
def test_long_histories_are_not_trained_on_by_the_public_trainer_of_dash_act_r(first, nothing):
    nth = np.arange(200)
    reviews = replace(
        REVIEWS.take(np.resize(np.arange(len(REVIEWS)), 200)),
        card=np.zeros(200, np.int64),
        elapsed_days=np.where(nth == 0, -1, 1),
        elapsed=np.minimum(nth, 1.0),
    )
    model = fitted(DashActR(fit="reference"), reviews, nth[first:])
    assert model.learned.fallback == nothing
    assert (model.parameters == FadingTraces.parameters.defaults) == nothing


def test_days_end_between_what_was_the_same_day_and_what_was_not():
    past, rows = history_of(SECONDS), np.flatnonzero(SECONDS.elapsed > 0)
    own, same_day = SECONDS.elapsed[rows], SECONDS.elapsed_days[rows] == 0
    np.testing.assert_array_equal(on_same_day(past, rows, own), same_day)
    assert on_same_day(past, rows, np.full(len(rows), 1e-9)).mean() > 0.99
    assert not on_same_day(past, rows, np.maximum(own, 1.0)).any()
    # The day before one that came within 24 hours may have ended at any time until it.
    soon = (SECONDS.elapsed_days[rows] == 1) & (own < 1)
    rows, middle = rows[soon], own[soon] / 2
    assert on_same_day(past, rows, middle - 1e-9).all()
    assert not on_same_day(past, rows, middle + 1e-9).any()


def test_the_loss_of_half_lives_is_that_of_the_definition_and_has_the_gradient_it_says():
    loss, w = HlrDuolingo().loss(REVIEWS, ROWS), np.array([0.5, -0.3, 0.2])
    value, slopes = loss(w)
    terms = []
    for row in ROWS:
        earlier = np.flatnonzero(REVIEWS.card[:row] == REVIEWS.card[row])
        right = int(REVIEWS.recalled[earlier].sum())
        x, t = np.array([1 + right, 1 + len(earlier) - right, 1]) ** 0.5, REVIEWS.elapsed[row]
        p = 0.9999 if REVIEWS.recalled[row] else 0.0001
        h, h_hat = np.clip([-t / np.log2(p), 2 ** (x @ w)], 15 / (24 * 60), 274)
        p_hat = np.clip(2 ** (-t / h_hat), 0.0001, 0.9999)
        terms.append((p_hat - p) ** 2 + 0.01 * (h_hat - h) ** 2)
    assert value == pytest.approx(np.mean(terms) + 0.1 * w @ w, rel=1e-12)
    numeric = [(loss(w + step)[0] - loss(w - step)[0]) / 2e-6 for step in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(slopes, numeric, rtol=1e-5)


def test_an_outcome_that_cannot_be_computed_with_leaves_the_belief_as_it_was():
    # A review at once is not later than now, in 64 bits, of such a half-life.
    almost_certain = np.array([[0.02], [0.02], [1e20]])
    belief = updated(almost_certain, np.zeros(1), np.array([False]))
    np.testing.assert_array_equal(belief, almost_certain)


@pytest.mark.parametrize("prior", [0, 0.5, 3.5])
def test_the_average_is_that_of_training_rows_and_counts_reviews_that_never_were(prior):
    expected = (REVIEWS.recalled[ROWS].sum() + prior) / (len(ROWS) + 2 * prior)
    model = fitted(Average(prior))
    np.testing.assert_allclose(model.predict(REVIEWS, FOLD.test), expected, rtol=1e-15)
    assert model.parameters == pytest.approx((expected,))
    curve = fitted(Constant(p=0.8)).predict_at(REVIEWS, FOLD.test[:2], np.ones((2, 3)))
    np.testing.assert_array_equal(curve, np.full((2, 3), 0.8))


def test_the_moving_average_follows_training_rows_and_goes_on_through_the_test_by_time():
    level, expected = 1.2, {}
    for row in (*ROWS, *FOLD.test):
        expected[row] = 1 / (1 + np.exp(-level))
        level += 0.3 * (REVIEWS.recalled[row] - expected[row])
    backwards = FOLD.test[::-1]
    p = fitted(MovingAverage()).predict(REVIEWS, backwards)
    np.testing.assert_allclose(p, [expected[row] for row in backwards], rtol=1e-12)


def test_the_oracle_knows_what_the_outcomes_were_drawn_from_and_skips_real_users():
    p = fitted(Oracle()).predict(REVIEWS, FOLD.test)
    np.testing.assert_array_equal(p, REVIEWS.truth[FOLD.test])
    with pytest.raises(FitSkipped):
        fitted(Oracle(), replace(REVIEWS, truth=None))
