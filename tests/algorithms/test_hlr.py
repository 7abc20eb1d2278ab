import numpy as np
import pytest
from scipy.optimize import approx_fprime

from srs_eval.algorithms.hlr import Hlr, HlrEquations, _log_loss
from srs_eval.engine.recurrent import RecurrentModel, states_before
from srs_eval.trial import trial_task

TASK = trial_task(same_day=False)
ROWS = TASK.folds[0].train


def objective(parameters):
    counts = states_before(HlrEquations(), (0.0,) * 3, TASK.reviews, ROWS)
    features = np.sqrt(np.vstack([counts, np.ones(len(ROWS))]))
    elapsed, recalled = TASK.reviews.elapsed[ROWS], TASK.reviews.recalled[ROWS]
    return _log_loss(np.asarray(parameters), features, elapsed, recalled)


def test_the_objective_is_the_log_loss_of_the_models_predictions():
    parameters = (0.4, -0.2, 1.5)
    p = RecurrentModel(HlrEquations(), parameters).predict(TASK.reviews, ROWS)
    recalled = TASK.reviews.recalled[ROWS]
    log_loss = -np.mean(np.log(np.where(recalled, p, 1 - p)))
    assert objective(parameters)[0] == pytest.approx(log_loss, rel=1e-12)


def test_the_gradient_is_that_of_finite_differences():
    parameters = np.array([0.4, -0.2, 1.5])
    numeric = approx_fprime(parameters, lambda w: objective(w)[0], 1e-7)
    np.testing.assert_allclose(objective(parameters)[1], numeric, rtol=1e-5)


def test_the_fit_ends_where_the_gradient_vanishes():
    fitted = Hlr().fit(TASK.reviews, ROWS, np.random.default_rng(0))
    loss, gradient = objective(fitted.parameters)
    assert loss < objective(Hlr().parameters)[0]
    np.testing.assert_allclose(gradient, 0.0, atol=1e-4)


def test_the_fit_does_not_depend_on_the_order_of_rows():
    forwards = Hlr().fit(TASK.reviews, ROWS, np.random.default_rng(0))
    backwards = Hlr().fit(TASK.reviews, ROWS[::-1], np.random.default_rng(0))
    np.testing.assert_allclose(forwards.parameters, backwards.parameters, atol=1e-3)
