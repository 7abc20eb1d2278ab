"""Objectives of fits, the minimiser against scipy, and the record of a fit."""

import math

import numpy as np
import pytest
from random_logs import further_rows, random_log
from scipy.optimize import LinearConstraint, minimize
from small_models import small_model, space_of

from srs_eval.engine.minimise import newton
from srs_eval.engine.objective import Objective, PackedLoss, feasible, standard_errors
from srs_eval.engine.packing import pack
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.errors import ConfigError, FitError


def logistic_curve(m, w, state, elapsed):
    """Logistic regression, which is convex, on three things about a review."""
    score = w[0] + w[1] * m.log(1 + elapsed) + w[2] * state[0] + w[3] * state[1]
    return 1 / (1 + m.exp(-score))


LOGISTIC = small_model(
    curve=logistic_curve,
    state_names=("last", "count"),
    init=lambda m, w, r: (r - 2.5, 0.0),
    step=lambda m, w, s, t, r, p: (r - 2.5, s[1] + 0.1),
    parameters=space_of((0.0,) * 4),
)
SPACES = {
    "free": space_of((0.0,) * 4),
    "within narrow bounds": space_of((0.0,) * 4, -0.2, 0.2),
    "within lopsided bounds": space_of((0.0,) * 4, -0.05, 3.0),
    "in order": space_of((0.0,) * 4, ordered=((0, 1), (1, 2))),
    "in order and within bounds": space_of((0.0,) * 4, -0.3, 0.3, ordered=((3, 2), (2, 0))),
}


def logistic_objective(seed):
    rng = np.random.default_rng(seed)
    reviews = random_log(rng, 60, 12, exponent=1.5)
    rows = further_rows(reviews)
    packed = pack(reviews, rows, weight=rng.uniform(0.5, 1.5, len(rows)))
    return Objective(PackedLoss(LOGISTIC, packed), rng.normal(0, 0.3, 4), 0.5 * np.eye(4))


def by_scipy(objective, space):
    order = np.zeros((len(space.ordered), len(space)))
    for number, (low, high) in enumerate(space.ordered):
        order[number, low], order[number, high] = -1.0, 1.0
    return minimize(
        lambda w: tuple(objective.fisher(np.clip(w, space.lower, space.upper))[:2]),
        np.zeros(4),
        jac=True,
        method="SLSQP",
        bounds=list(zip(space.lower, space.upper, strict=True)),
        constraints=[LinearConstraint(order, 0, np.inf)] if space.ordered else [],
        options={"ftol": 1e-14, "maxiter": 500},
    )


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_newton_finds_the_minimum_that_scipy_finds(space):
    objective = logistic_objective(1)
    expected = by_scipy(objective, space)
    end = newton(objective, np.full(4, 0.1), space, tolerance=1e-10)
    assert end.converged
    assert not newton(objective, np.zeros(4), space, most_steps=1).converged
    assert end.value <= expected.fun * (1 + 1e-6)
    np.testing.assert_allclose(end.parameters, expected.x, atol=1e-3)
    assert end.value == objective.fisher(end.parameters).loss
    np.testing.assert_array_equal(feasible(end.parameters, space), end.parameters)
    outside = newton(objective, np.full(4, 99.0), space)  # is moved inside
    assert outside.value == pytest.approx(end.value, rel=1e-4)


def test_a_start_without_a_loss_is_refused_with_its_parameters():
    start = np.array([0.1, np.nan, 0.2, 0.3])
    with pytest.raises(FitError, match=r"(?s)loss.* nan .*parameters \[0\.1, nan"):
        newton(logistic_objective(0), start, SPACES["free"])


def test_the_pull_towards_the_centre_is_added_everywhere():
    objective, w = logistic_objective(0), np.array([0.6, 0.5, -0.1, 0.2])
    bare, pulled, distance = objective.loss.fisher(w), objective.fisher(w), w - objective.centre
    assert pulled.loss == pytest.approx(bare.loss + 0.5 * distance @ distance)
    np.testing.assert_allclose(pulled.gradient, bare.gradient + distance)
    np.testing.assert_allclose(pulled.information, bare.information + np.eye(4))
    np.testing.assert_allclose(objective.gradient(w).gradient, pulled.gradient)


def test_what_is_out_of_bounds_or_order_is_moved():
    space = space_of((0.0,) * 3, 0.0, 1.0, ordered=((0, 1), (1, 2)))
    assert feasible(np.array([-5.0, 0.2, 9.0]), space).tolist() == [0.0, 0.2, 1.0]
    assert feasible(np.array([2.0, 0.2, 0.1]), space).tolist() == [1.0, 1.0, 1.0]


def test_standard_errors_are_in_any_units_and_there_is_none_at_a_bound_or_without_information():
    information, units = np.array([[4.0, 1.0], [1.0, 3.0]]), np.array([1e-6, 1e5])
    space = space_of((0.0, 0.0), -math.inf, math.inf)
    scaled = standard_errors(information * np.outer(units, units), np.zeros(2), space)
    np.testing.assert_allclose(scaled * units, np.sqrt(np.diag(np.linalg.inv(information))))
    space, w = space_of((0.0,) * 4, 0.0, 1.0), np.array([0.5, 1.0, 0.5, 0.0])
    errors = standard_errors(np.diag([4.0, 1.0, 0.0, 25.0]), w, space)
    np.testing.assert_array_equal(errors, [0.5, np.nan, np.nan, np.nan])
    assert np.isnan(standard_errors(np.eye(4), np.ones(4), space)).all()


SPACE = ParameterSpace((1.0, 2.0), (0.0, 1.0), (5.0, 5.0), ordered=((0, 1),))


@pytest.mark.parametrize(
    ("given", "problems"),
    [
        *(([0.0, 5.0], 0), ([2.0, 2.0], 0)),  # bounds, and equal ones in order
        *(([math.nan, 0.5, 3.0], 3), ([5.1, -math.inf], 3), ([3, 2], 1), ([1.0, "2"], 1)),
        *(([True, 2], 1), ("1 2", 1), (3.0, 1), ({1: 1}, 1)),
    ],
)
def test_parameters_that_make_no_sense_are_refused_with_all_problems(given, problems):
    if problems:
        with pytest.raises(ConfigError) as refused:
            SPACE.checked(given, "example")
        assert str(refused.value).count("  - ") == problems
    else:
        assert SPACE.checked(given, "example") == tuple(given)
