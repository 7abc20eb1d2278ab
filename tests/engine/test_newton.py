"""Both fitters, against scipy and against each other."""

import numpy as np
import pytest
from published import PUBLISHED
from random_logs import further_rows, random_log
from scipy.optimize import LinearConstraint, minimize
from small_models import small_model, space_of

from srs_eval.engine.compiled import compiled
from srs_eval.engine.lbfgs import lbfgs
from srs_eval.engine.newton import newton
from srs_eval.engine.objective import Objective, penalty_matrix
from srs_eval.engine.packing import pack
from srs_eval.errors import FitError


def logistic_curve(m, w, state, elapsed):
    """Logistic regression, which is convex, on three things about a review."""
    score = w[0] + w[1] * m.log(1 + elapsed) + w[2] * state[0] + w[3] * state[1]
    return 1 / (1 + m.exp(-score))


LOGISTIC = small_model(
    curve_of=logistic_curve,
    state_names=("last", "count"),
    init_of=lambda m, w, r: (r - 2.5, 0.0),
    step_of=lambda m, w, s, t, r, p: (r - 2.5, s[1] + 0.1),
    space=space_of((0.0,) * 4),
)
SPACES = {
    "free": space_of((0.0,) * 4),
    "within narrow bounds": space_of((0.0,) * 4, -0.2, 0.2),
    "within lopsided bounds": space_of((0.0,) * 4, -0.05, 3.0),
    "in order": space_of((0.0,) * 4, ordered=((0, 1), (1, 2))),
    "in order and within bounds": space_of((0.0,) * 4, -0.3, 0.3, ordered=((3, 2), (2, 0))),
}


def logistic_objective(seed, *, pull=0.5, dtype=np.float64):
    rng = np.random.default_rng(seed)
    reviews = random_log(rng, 60, 12, exponent=1.5)
    rows = further_rows(reviews)
    packed = pack(reviews, rows, weight=rng.uniform(0.5, 1.5, len(rows)), dtype=dtype)
    return Objective(LOGISTIC, packed, rng.normal(0, 0.3, 4), pull * np.eye(4))


def by_scipy(objective, space, start):
    order = np.zeros((len(space.ordered), len(space)))
    for number, (low, high) in enumerate(space.ordered):
        order[number, low], order[number, high] = -1.0, 1.0
    return minimize(
        lambda w: tuple(objective.gradient(np.clip(w, space.lower, space.upper))),
        start,
        jac=True,
        method="SLSQP",
        bounds=list(zip(space.lower, space.upper, strict=True)),
        constraints=[LinearConstraint(order, 0, np.inf)] if space.ordered else [],
        options={"ftol": 1e-14, "maxiter": 500},
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_newton_finds_the_minimum_that_scipy_finds(space, seed):
    objective = logistic_objective(seed)
    expected = by_scipy(objective, space, np.zeros(4))
    found = newton(objective, np.full(4, 0.1), space, tolerance=1e-10)
    assert found.converged
    assert found.value <= expected.fun * (1 + 1e-6)
    np.testing.assert_allclose(found.parameters, expected.x, atol=1e-3)
    assert found.value == objective.fisher(found.parameters).loss
    assert (found.parameters >= space.lower).all()
    assert (found.parameters <= space.upper).all()
    assert all(found.parameters[low] <= found.parameters[high] for low, high in space.ordered)


@pytest.mark.parametrize("name", ["free", "within narrow bounds"])
def test_lbfgs_and_newton_in_single_precision_find_the_same(name):
    space = SPACES[name]
    fast = newton(logistic_objective(2), np.full(4, 0.1), space, tolerance=1e-10)
    slow = lbfgs(logistic_objective(2), np.full(4, 0.1), space)
    single = newton(logistic_objective(2, dtype=np.float32), np.zeros(4), space)
    assert slow.converged
    assert slow.value == pytest.approx(fast.value, rel=1e-6)
    assert single.value == pytest.approx(fast.value, rel=1e-5)
    np.testing.assert_allclose(slow.parameters, fast.parameters, atol=2e-3)
    np.testing.assert_allclose(single.parameters, fast.parameters, atol=1e-2)


@pytest.mark.parametrize("fitter", [newton, lbfgs])
def test_a_start_outside_of_the_bounds_is_moved_inside(fitter):
    space = SPACES["within narrow bounds"]
    objective = logistic_objective(0)
    inside, outside = (fitter(objective, np.full(4, at), space) for at in (0.1, 99.0))
    assert outside.value == pytest.approx(inside.value, rel=1e-4)


@pytest.mark.parametrize("fitter", [newton, lbfgs])
def test_a_start_without_a_loss_is_an_error_that_says_where(fitter):
    start = np.array([0.1, np.nan, 0.2, 0.3])
    with pytest.raises(FitError, match=r"(?s)loss.* nan .*parameters \[0\.1, nan"):
        fitter(logistic_objective(0), start, SPACES["free"])


def test_a_fit_that_may_not_end_says_that_it_did_not():
    assert not newton(logistic_objective(0), np.zeros(4), SPACES["free"], most_steps=1).converged


@pytest.mark.parametrize("name", ["FSRS-6", "FSRS-7", "SBD", "HLR"])
def test_published_models_are_fitted_at_least_as_well_as_by_scipy(name):
    equations = PUBLISHED[name]
    space = equations.parameters
    reviews = random_log(np.random.default_rng(4), 150, 8)
    rows = further_rows(reviews)
    centre = np.array(space.defaults)
    packed = pack(reviews, rows, weight=np.ones(len(rows)))
    objective = Objective(compiled(equations), packed, centre, penalty_matrix(space, 1.0))
    found = newton(objective, centre, space, tolerance=1e-7, most_steps=200)
    assert found.value < objective.gradient(centre).loss
    # Objectives of several local minima: either may end in the better one, but not far above.
    assert found.value <= by_scipy(objective, space, centre).fun * 1.001
