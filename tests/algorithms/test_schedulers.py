import numpy as np

from srs_eval.algorithms.schedulers.anki_sm2 import AnkiSm2, AnkiSm2Equations
from srs_eval.algorithms.schedulers.sm2_trainable import Sm2Trainable
from srs_eval.checks.toy_log import trial_task
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.protocol.fractional_days import SrsBenchmarkSecs

W = np.array(AnkiSm2Equations.parameters.defaults)
TASK = trial_task(same_day=False)


def test_the_order_is_an_option_of_the_algorithm():
    ours, published = (
        AnkiSm2(fit="default", parameters=W.tolist(), published_order=order)
        .fit(TASK.reviews, TASK.folds[0].train, np.random.default_rng(0))
        .predict(TASK.reviews, TASK.folds[0].test)
        for order in (False, True)
    )
    assert (ours != published).any()


def test_several_starts_find_first_intervals_of_minutes():
    # From one start the loss stays half as high again.
    reviews = SyntheticUsers(users=5, version=1).read(5)
    task = SrsBenchmarkSecs()(reviews, same_day=False)
    rows = task.folds[-1].train
    newton, lbfgs = (
        Sm2Trainable(fit=method).fit(task.reviews, rows, np.random.default_rng(0))
        for method in ("newton", "lbfgs")
    )
    space = Sm2Trainable().widest_space()
    objective = Sm2Trainable(fit="lbfgs").objective(
        newton.equations, space, task.reviews, rows, np.array(space.defaults)
    )
    found, other = (
        objective.gradient(np.array(model.parameters)).loss for model in (newton, lbfgs)
    )
    assert found < 1.01 * other
