"""The prior of FSRS v4 to 7: first stabilities as logarithms, and a weight that falls with data."""

from dataclasses import replace

import numpy as np
import pytest

from srs_eval.algorithms.fsrs.fitting import later_prior_weight
from srs_eval.algorithms.fsrs.fsrs4 import Fsrs4
from srs_eval.algorithms.fsrs.fsrs5 import Fsrs5
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7
from srs_eval.algorithms.fsrs.fsrs45 import Fsrs45
from srs_eval.checks.toy_log import trial_task
from srs_eval.data.schema import reviews_from_columns
from srs_eval.engine.packing import pack

VERSIONS = (Fsrs4, Fsrs45, Fsrs5, Fsrs6, Fsrs7)
RNG = np.random.default_rng(0)


def space_of(algorithm):
    equations = algorithm.equations(whole_days=True)
    return equations, algorithm.space(equations)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_objective_in_logarithms_has_the_gradient_it_says(version):
    algorithm = version(fit="newton", recency="none")
    task = trial_task(same_day=version.same_day)
    equations, space = space_of(algorithm)
    rows = task.folds[-1].train
    w = np.array(space.defaults)
    objective = algorithm.objective(equations, space, task.reviews, rows, w)
    # In double precision, for differences to show.
    packed = pack(task.reviews, rows, weight=np.ones(len(rows)))
    objective = replace(objective, packed=packed)
    theta = objective.model.encode(w) + RNG.normal(0, 0.01, len(w))
    gradient, information = objective.fisher(theta)[1:]
    np.testing.assert_allclose(objective.gradient(theta).gradient, gradient, rtol=1e-7, atol=1e-7)
    for place in (0, 3, 8):
        step = np.zeros(len(w))
        step[place] = 1e-6
        above, below = (objective.gradient(theta + sign * step).loss for sign in (1, -1))
        assert (above - below) / 2e-6 == pytest.approx(gradient[place], rel=1e-4, abs=1e-4)
    # The Fisher information is a chain of derivatives too.
    bare = objective.model.model.fisher(objective.model.decode(theta), packed).information
    slope = objective.model.slope(objective.model.decode(theta))
    expected = bare * np.outer(slope, slope) + 2 * objective.penalty_matrix
    np.testing.assert_allclose(information, expected)


def test_the_penalty_of_first_stabilities_is_a_shift_and_deviations():
    _, space = space_of(Fsrs6())
    penalty = Fsrs6().penalty(space, 500, whole_days=True)
    expected = (1.77778 * np.eye(4) - 0.41830) / 2
    np.testing.assert_allclose(penalty[:4, :4], expected, atol=1e-5)
    assert not penalty[:4, 4:].any()
    np.testing.assert_allclose(np.diag(penalty)[4:], 2.5 / np.square(space.spread[4:]))
    assert np.linalg.eigvalsh(penalty).min() > 0
    np.testing.assert_allclose(
        Fsrs6(prior_weight=3).penalty(space, 500, whole_days=True), 3 * penalty
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_the_clock_changes_the_weight_of_the_other_parameters_alone(version):
    _, space = space_of(version())
    days, fractions = (version().penalty(space, 500, whole_days=clock) for clock in (True, False))
    np.testing.assert_array_equal(days[:4], fractions[:4])
    in_days, in_fractions = version.later_prior
    np.testing.assert_allclose(days[4:] * in_fractions, fractions[4:] * in_days)


def test_in_whole_days_the_prior_of_fsrs7_has_a_centre_of_its_own_unless_parameters_are_given():
    published = Fsrs7().defaults(whole_days=True)
    moved = np.flatnonzero(np.array(Fsrs7().prior_centre(whole_days=True)) != published)
    assert moved.tolist() == [25, 27]
    assert Fsrs7().prior_centre(whole_days=False) == published
    assert Fsrs7(parameters=published).prior_centre(whole_days=True) == published
    log = recalled_once(5, 5)  # too little to leave the centre
    w = Fsrs7().fit(log, np.arange(5, 10), RNG).parameters
    assert w[25] == pytest.approx(0.5, abs=0.1)
    assert Fsrs7(fit="default").fit(log, np.arange(5, 10), RNG).parameters == published


def test_the_weight_of_the_other_parameters_falls_towards_a_half():
    weights = [later_prior_weight(n) for n in (0, 500, 5_000, 10_000_000)]
    assert weights == pytest.approx([4.5, 2.5, 0.8636, 0.5002], abs=1e-4)


def recalled_once(cards, days):
    """Cards that are learned with Good and recalled once."""
    day = np.r_[np.zeros(cards), np.full(cards, days)].astype(np.int64)
    card = np.tile(np.arange(cards), 2)
    return reviews_from_columns(
        user="ada", source="test", card=card, rating=np.full(2 * cards, 3), day=day
    )


def test_without_data_the_standard_error_is_that_of_the_prior():
    algorithm = Fsrs6(recency="none")
    log = recalled_once(5, 5)
    model = algorithm.fit(log, np.arange(5, 10), RNG)
    w, errors = np.array(model.parameters), np.array(model.learned.standard_errors)
    assert errors[0] / w[0] == pytest.approx(np.hypot(1.5, 0.75), rel=0.2)
    assert errors[2] / w[2] < errors[0] / w[0]  # Good was observed
