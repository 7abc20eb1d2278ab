"""What all fitted algorithms have in common."""

import dataclasses

import numpy as np
import pytest
from random_logs import log_of

from srs_eval.algorithms.features.dash import DashMcm
from srs_eval.algorithms.features.dash_act_r import DashActR
from srs_eval.algorithms.fsrs.fsrs5 import Fsrs5
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.fsrs.fsrs45 import Fsrs45
from srs_eval.algorithms.fsrs.one_step import train_one_step
from srs_eval.algorithms.half_life.hlr import Hlr, HlrEquations
from srs_eval.algorithms.schedulers.anki_sm2 import AnkiSm2
from srs_eval.checks.toy_log import trial_task
from srs_eval.errors import FitError

TASK = trial_task(same_day=True)
REVIEWS, FOLD = TASK.reviews, TASK.folds[0]


def fitted(algorithm, reviews=REVIEWS, rows=FOLD.train):
    return algorithm.fit(reviews, rows, np.random.default_rng(0))


def test_given_parameters_are_kept_where_nothing_is_fitted():
    given = list(Fsrs6().defaults(whole_days=True))
    given[20] = 0.5
    assert fitted(Fsrs6(fit="default", parameters=given)).parameters == tuple(given)


@pytest.mark.parametrize("method", ["newton", "lbfgs"])
def test_a_strong_prior_holds_parameters_where_they_were_published(method):
    found = fitted(Fsrs6(fit=method, prior_weight=1e9)).parameters
    np.testing.assert_allclose(found, Fsrs6().defaults(whole_days=True), rtol=1e-3)


@pytest.mark.parametrize("method", ["newton", "lbfgs", "reference", "s0", "one_step"])
def test_with_binary_ratings_hard_and_easy_are_good_everywhere(method):
    good = dataclasses.replace(REVIEWS, rating=np.where(REVIEWS.recalled, 3, 1))
    assert (good.rating != REVIEWS.rating).any()
    binary = fitted(Fsrs6(fit=method, binary=True))
    expected = fitted(Fsrs6(fit=method), good)
    # Single precision, in which the two are not the same computation.
    np.testing.assert_allclose(binary.parameters, expected.parameters, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(
        binary.predict(REVIEWS, FOLD.test), expected.predict(good, FOLD.test), rtol=1e-3
    )


def test_recency_moves_what_is_learned_towards_what_came_last():
    # Everything was forgotten in the first half of the training reviews, and nothing later.
    half = FOLD.train[len(FOLD.train) // 2]
    rating = np.where(np.arange(len(REVIEWS)) < half, 1, 3)
    reviews = dataclasses.replace(REVIEWS, rating=rating)
    means = [
        fitted(Hlr(recency=recency), reviews).predict(reviews, FOLD.test).mean()
        for recency in ("none", "mild", "steep")
    ]
    assert means == sorted(means)


@pytest.mark.parametrize("algorithm", [Fsrs6(), Hlr(), DashMcm(), Fsrs5(fit="lbfgs")])
def test_going_on_from_an_earlier_fit_ends_where_a_fit_from_nothing_does(algorithm):
    half = FOLD.train[: len(FOLD.train) // 2]
    before = fitted(algorithm, rows=half)
    expected = fitted(algorithm).predict(REVIEWS, FOLD.test)
    after = algorithm.refit(REVIEWS, FOLD.train, np.random.default_rng(0), before)
    np.testing.assert_allclose(after.predict(REVIEWS, FOLD.test), expected, atol=0.01)


def test_standard_errors_come_with_a_fit_and_shrink_with_more_reviews():
    few = fitted(Hlr(), rows=FOLD.train[: len(FOLD.train) // 4]).learned.standard_errors
    many = fitted(Hlr()).learned.standard_errors
    assert (np.array(many) < np.array(few)).all()
    assert (np.array(many) > 0).all()


@pytest.mark.parametrize("method", ["reference", "s0", "one_step"])
def test_what_has_nothing_to_train_on_keeps_its_parameters_and_says_so(method):
    later_day = np.flatnonzero(REVIEWS.elapsed_days > 0)
    _, first = np.unique(REVIEWS.card[later_day], return_index=True)
    second_reviews = later_day[first]
    # First stabilities need second reviews; the public trainer of FSRS-4.5 needs later ones.
    cases = [(Fsrs6(fit=method), np.setdiff1d(FOLD.train, second_reviews))]
    if method == "reference":
        cases.append((Fsrs45(fit=method), np.intersect1d(FOLD.train, second_reviews)))
    for algorithm, rows in cases:
        assert len(rows)
        model = fitted(algorithm, rows=rows)
        assert model.parameters == algorithm.defaults(whole_days=True)
        assert model.learned.fallback
        assert "the parameters were kept" in model.learned.note
        newton = fitted(type(algorithm)(), rows=rows).learned
        assert (newton.fallback, newton.note) == (False, "")


def test_few_reviews_that_are_all_recalled_do_not_send_half_lives_to_infinity():
    rows = FOLD.train[REVIEWS.recalled[FOLD.train]][:12]
    parameters = fitted(Hlr(), rows=rows).parameters
    assert np.abs(np.array(parameters) - HlrEquations.parameters.defaults).max() < 5


@pytest.mark.parametrize("method", ["newton", "lbfgs", "reference"])
@pytest.mark.parametrize("algorithm", [Hlr, DashActR])
def test_a_loss_that_is_not_finite_is_an_error_that_names_the_user(algorithm, method):
    elapsed = REVIEWS.elapsed.copy()
    elapsed[FOLD.train[-1]] = np.nan
    broken = dataclasses.replace(REVIEWS, elapsed=elapsed)
    with pytest.raises(FitError, match=f"{algorithm.name}: user trial: "):
        fitted(algorithm(fit=method), broken)


def test_the_published_order_is_an_option_of_anki_sm2():
    ours, published = (
        fitted(AnkiSm2(fit="default", published_order=order)).predict(REVIEWS, FOLD.test)
        for order in (False, True)
    )
    assert (ours != published).any()


def test_steps_of_one_review_stay_in_their_bounds_and_end_in_numbers():
    reviews = log_of([1] * 134, [4] * 134, [0] + [3] * 133)
    space, rows = Fsrs6().widest_space(), np.arange(1, 134)
    learned = train_one_step(reviews, rows, np.array(space.lower), space)
    assert (learned >= space.lower).all()
    assert (learned <= space.upper).all()
    start = np.array(space.defaults)
    start[8] = np.nan
    with pytest.raises(FitError):
        train_one_step(reviews, rows, start, space)
