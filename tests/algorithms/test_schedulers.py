import numpy as np
import pytest

from srs_eval.algorithms.schedulers.anki_sm2 import AnkiSm2, AnkiSm2Equations
from srs_eval.algorithms.schedulers.sm2_trainable import Sm2Trainable
from srs_eval.checks.toy_log import trial_task
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.engine.equations import NumpyMaths
from srs_eval.protocol.fractional_days import SrsBenchmarkSecs

M = NumpyMaths()
W = np.array(AnkiSm2Equations.parameters.defaults)
RATINGS = np.array([1, 2, 3, 4])
TASK = trial_task(same_day=False)


def intervals(equations, elapsed, interval=10.0, w=W):
    """Next interval after each rating."""
    state = np.full(4, interval), np.full(4, 2.5)
    return equations.step(M, w, state, np.full(4, elapsed), RATINGS, None)[0]


def test_an_interval_on_time_grows_as_in_the_manual():
    # New interval 0, hard interval 1.2, ease 2.5, easy bonus 1.3; at least a day, almost.
    np.testing.assert_allclose(intervals(AnkiSm2Equations(), 10.0), [0.99, 12.0, 25.0, 32.5])


def test_being_late_counts_half_for_good_and_whole_for_easy():
    np.testing.assert_allclose(intervals(AnkiSm2Equations(), 14.0)[2:], [12 * 2.5, 14 * 2.5 * 1.3])


def test_being_early_never_shortens_the_interval_of_a_good_answer():
    np.testing.assert_allclose(intervals(AnkiSm2Equations(), 1.0), [0.99, 6.0, 10.0, 11.5])


def test_the_published_order_exchanges_good_and_easy_alone():
    for elapsed in (1.0, 10.0, 14.0):
        ours = intervals(AnkiSm2Equations(), elapsed)
        published = intervals(AnkiSm2Equations(published_order=True), elapsed)
        np.testing.assert_array_equal(published, ours[[0, 1, 3, 2]])


def test_the_interval_modifier_multiplies_passes_alone():
    w = W.copy()
    w[5], w[6] = 0.5, 2.0
    expected = intervals(AnkiSm2Equations(), 10.0) * 2
    expected[0] = 5.0
    np.testing.assert_allclose(intervals(AnkiSm2Equations(), 10.0, w=w), expected)


def test_the_order_is_an_option_of_the_algorithm():
    ours, published = (
        AnkiSm2(fit="default", parameters=W.tolist(), published_order=order)
        .fit(TASK.reviews, TASK.folds[0].train, np.random.default_rng(0))
        .predict(TASK.reviews, TASK.folds[0].test)
        for order in (False, True)
    )
    assert (ours != published).any()


@pytest.mark.parametrize("algorithm", [AnkiSm2, Sm2Trainable])
def test_fitting_lowers_the_loss_of_the_training_reviews(algorithm):
    def loss(method):
        rows = TASK.folds[0].train
        model = algorithm(fit=method).fit(TASK.reviews, rows, np.random.default_rng(0))
        p = model.predict(TASK.reviews, rows)
        return -np.mean(np.log(np.where(TASK.reviews.recalled[rows], p, 1 - p)))

    assert loss("newton") < loss("default")
    assert loss("reference") < loss("default")


@pytest.mark.slow
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
