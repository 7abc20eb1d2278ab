import numpy as np

from srs_eval.algorithms.half_life.hlr import Hlr, HlrEquations
from srs_eval.checks.toy_log import trial_task

TASK = trial_task(same_day=False)
ROWS = TASK.folds[0].train


def objective(method):
    hlr = Hlr(fit=method, recency="none", prior_weight=0.0)
    space = HlrEquations.parameters
    return hlr.objective(HlrEquations(), space, TASK.reviews, ROWS, np.array(space.defaults))


def test_few_reviews_that_are_all_recalled_do_not_send_half_lives_to_infinity():
    rows = ROWS[TASK.reviews.recalled[ROWS]][:12]
    parameters = Hlr().fit(TASK.reviews, rows, np.random.default_rng(0)).parameters
    assert np.abs(np.array(parameters) - HlrEquations.parameters.defaults).max() < 5
