"""What a fit minimises, and what it says of the result."""

import math

import numpy as np
import pytest
from random_logs import further_rows, random_log
from small_models import small_model, space_of

from srs_eval.engine.objective import Objective, feasible, standard_errors
from srs_eval.engine.packing import pack

MODEL = small_model(
    curve_of=lambda m, w, s, t: m.exp(-m.exp(w[0]) * t / 30) * (0.5 + 0.5 / (1 + w[1] ** 2)),
    space=space_of((0.2, 0.3)),
)
REVIEWS = random_log(np.random.default_rng(0), 30, 10, exponent=1.5)
ROWS = further_rows(REVIEWS)
PACKED = pack(REVIEWS, ROWS, weight=np.ones(len(ROWS)))
CENTRE, STIFFNESS = np.array([0.1, -0.2]), np.diag([2.0, 0.0])
OBJECTIVE = Objective(MODEL, PACKED, CENTRE, STIFFNESS)


def test_the_pull_towards_the_centre_is_added_everywhere():
    w = np.array([0.6, 0.5])
    bare, pulled = MODEL.fisher(w, PACKED), OBJECTIVE.fisher(w)
    assert pulled.loss == pytest.approx(bare.loss + 2.0 * 0.5**2)
    np.testing.assert_allclose(pulled.gradient, bare.gradient + np.array([2 * 2.0 * 0.5, 0]))
    np.testing.assert_allclose(pulled.information, bare.information + np.diag([4.0, 0.0]))
    np.testing.assert_allclose(OBJECTIVE.gradient(w).gradient, pulled.gradient)
    assert OBJECTIVE.penalty(CENTRE)[0] == 0.0


def test_feasible_keeps_what_is_and_moves_what_is_not():
    space = space_of((0.0,) * 3, 0.0, 1.0, ordered=((0, 1), (1, 2)))
    for w, expected in (
        ([0.1, 0.2, 0.3], [0.1, 0.2, 0.3]),
        ([-5.0, 0.2, 9.0], [0.0, 0.2, 1.0]),
        ([0.5, 0.2, 0.1], [0.5, 0.5, 0.5]),
        ([2.0, 0.2, 0.1], [1.0, 1.0, 1.0]),
    ):
        given = np.array(w)
        assert feasible(given, space).tolist() == expected
        assert given.tolist() == w  # not changed in place


def test_standard_errors_are_those_of_a_numeric_hessian():
    # At a logistic curve the expected curvature is the one there is.
    model = small_model(
        curve_of=lambda m, w, s, t: 1 / (1 + m.exp(-w[0] - w[1] * m.log(1 + t))),
        space=space_of((0.0, 0.0)),
    )
    w, step = np.array([0.7, -0.2]), 1e-5
    slopes = [
        (model.gradient(w + d, PACKED).gradient - model.gradient(w - d, PACKED).gradient)
        / (2 * step)
        for d in step * np.eye(2)
    ]
    expected = np.sqrt(np.diag(np.linalg.inv(np.array(slopes))))
    found = standard_errors(model.fisher(w, PACKED).information, w, space_of((0.0, 0.0)))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_standard_errors_do_not_depend_on_units():
    information = np.array([[4.0, 1.0], [1.0, 3.0]])
    units = np.array([1e-6, 1e5])
    space = space_of((0.0, 0.0), -math.inf, math.inf)
    plain = standard_errors(information, np.zeros(2), space)
    np.testing.assert_allclose(plain, np.sqrt(np.diag(np.linalg.inv(information))))
    scaled = standard_errors(information * np.outer(units, units), np.zeros(2), space)
    np.testing.assert_allclose(scaled * units, plain)


def test_there_is_no_standard_error_at_a_bound_or_without_information():
    space = space_of((0.0,) * 4, 0.0, 1.0)
    information = np.diag([4.0, 1.0, 0.0, 25.0])
    w = np.array([0.5, 1.0, 0.5, 0.0])
    found = standard_errors(information, w, space)
    assert found[0] == 0.5
    assert np.isnan(found[1:]).all()
    assert np.isnan(standard_errors(np.eye(4), np.ones(4), space)).all()


def test_parameters_that_only_their_sum_tells_apart_have_no_standard_error():
    together = small_model(
        curve_of=lambda m, w, s, t: m.exp(-(w[0] + w[1]) * t / 30), space=space_of((0.3, 0.4))
    )
    w = np.array([0.3, 0.4])
    found = standard_errors(together.fisher(w, PACKED).information, w, space_of((0.3, 0.4)))
    assert np.all(np.isnan(found) | (found > 1e3))
