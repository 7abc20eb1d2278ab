import numpy as np
import pytest

from srs_eval.algorithms.half_life.hlr import Hlr, HlrEquations
from srs_eval.checks.toy_log import trial_task
from srs_eval.engine.recurrent import RecurrentModel

TASK = trial_task(same_day=False)
ROWS = TASK.folds[0].train


def objective(method):
    hlr = Hlr(fit=method, recency="none", prior_weight=0.0)
    space = HlrEquations.parameters
    return hlr.objective(HlrEquations(), space, TASK.reviews, ROWS, np.array(space.defaults))


def fitted(method, rows=ROWS):
    return Hlr(fit=method, recency="none", prior_weight=0.0).fit(
        TASK.reviews, rows, np.random.default_rng(0)
    )


def test_the_objective_is_the_log_loss_of_the_models_predictions():
    parameters = (0.4, -0.2, 1.5)
    p = RecurrentModel(HlrEquations(), parameters).predict(TASK.reviews, ROWS)
    recalled = TASK.reviews.recalled[ROWS]
    log_loss = -np.sum(np.log(np.where(recalled, p, 1 - p)))
    assert objective("lbfgs").gradient(np.array(parameters)).loss == pytest.approx(log_loss)


@pytest.mark.parametrize("method", ["newton", "lbfgs"])
def test_the_fit_ends_where_the_gradient_vanishes(method):
    found = objective("lbfgs").gradient(np.array(fitted(method).parameters))
    assert found.loss < objective("lbfgs").gradient(np.array(HlrEquations.parameters.defaults)).loss
    np.testing.assert_allclose(found.gradient / len(ROWS), 0.0, atol=1e-3)


def test_both_ways_to_fit_find_the_same_minimum():
    newton, lbfgs = (
        objective("lbfgs").gradient(np.array(fitted(method).parameters)).loss
        for method in ("newton", "lbfgs")
    )
    assert newton == pytest.approx(lbfgs, rel=1e-5)


@pytest.mark.parametrize("method", ["newton", "lbfgs"])
def test_the_fit_does_not_depend_on_the_order_of_rows(method):
    forwards, backwards = fitted(method), fitted(method, ROWS[::-1])
    np.testing.assert_allclose(forwards.parameters, backwards.parameters, rtol=1e-3)


def test_few_reviews_that_are_all_recalled_do_not_send_half_lives_to_infinity():
    rows = ROWS[TASK.reviews.recalled[ROWS]][:12]
    parameters = Hlr().fit(TASK.reviews, rows, np.random.default_rng(0)).parameters
    assert np.abs(np.array(parameters) - HlrEquations.parameters.defaults).max() < 5
