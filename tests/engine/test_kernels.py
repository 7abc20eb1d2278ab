"""Kernels against the equations on plain numbers, and their derivatives against differences."""

import numpy as np
import pytest
from invented import log_of
from published import PUBLISHED
from random_logs import further_rows, random_log
from small_models import SmallEquations, small_model, space_of

from srs_eval.algorithms.recurrent.model import RecurrentModel
from srs_eval.engine.compiled import compiled
from srs_eval.engine.equations import NUMPY_MATHS
from srs_eval.engine.expressions import Graph
from srs_eval.engine.objective import feasible
from srs_eval.engine.packing import pack
from srs_eval.engine.tracing import LARGEST_P, SMALLEST_P, trace
from srs_eval.errors import FitError

DTYPES = [np.float64, np.float32]
# Nearer to 0 or 1, a rounding error of p is no small error of the loss.
LEAST_P = {np.float64: 1e-4, np.float32: 0.02}
# Of loss, gradient and information, and share of the largest that counts for the others.
TOLERANCE = {np.float64: (1e-9, 1e-5, 1e-4, 1e-3), np.float32: (1e-4, 1e-4, 1e-3, 0.03)}
REVIEWS = random_log(np.random.default_rng(5), 20, 12, exponent=1.3)
ROWS = further_rows(REVIEWS)


def random_parameters(equations, rng):
    """Go a random share of the way from each default to a bound, or to a unit from the default."""
    space = equations.parameters
    lower, upper, default = (np.array(x) for x in (space.lower, space.upper, space.defaults))
    bound = np.where(rng.random(len(default)) < 0.5, lower, upper)
    aside = np.where(bound < default, -1.0, 1.0)
    bound = np.where(np.isfinite(bound), bound, default + aside)
    return feasible(default + rng.random(len(default)) * (bound - default), space)


def plain_walk(equations, w, reviews):
    """Ask the author's equations about one review after the other, for one or several `w`.

    Return predictions [reviews, ...], NaN at first ones, and states [reviews, states, ...].
    """
    latest, p, states = {}, [], []
    columns = (reviews.card.tolist(), reviews.elapsed, reviews.rating.astype(float))
    for card, elapsed, rating in zip(*columns, strict=True):
        if card in latest:
            p.append(equations.curve(NUMPY_MATHS, w, latest[card], elapsed))
            latest[card] = equations.step(NUMPY_MATHS, w, latest[card], elapsed, rating, p[-1])
        else:
            p.append(np.nan)
            latest[card] = equations.init(NUMPY_MATHS, w, rating)
        states.append([value + np.zeros(w.shape[1:]) for value in latest[card]])
    return np.array([value + np.zeros(w.shape[1:]) for value in p]), np.array(states)


def assert_walk_is_numpys(model, w, reviews, rtol=1e-12):
    """Check predictions and states."""
    packed = pack(reviews)
    p, states = model.walk(w, packed)
    with np.errstate(all="ignore"):
        expected, of_states = plain_walk(model.equations, w, reviews)
    place, lane = np.divmod(packed.where, p.shape[1])
    np.testing.assert_allclose(states[place, :, lane], of_states, rtol=rtol)
    np.testing.assert_allclose(p[place, lane], expected, rtol=rtol, atol=1e-12)


def assert_derivatives_are_differences(model, w, reviews, seed, dtype):
    """Check loss, gradient and Fisher information of rows and weights that are chosen here."""
    rng = np.random.default_rng(seed)
    rows = further_rows(reviews)
    rows = rows[rng.random(len(rows)) < 0.8]
    weight = rng.uniform(0.2, 2.0, len(rows)).astype(np.float32).astype(float)
    steps = 1e-6 * np.eye(len(w))
    p, _ = plain_walk(model.equations, np.c_[w, w[:, None] + steps, w[:, None] - steps], reviews)
    p, above, below = np.split(p[rows], [1, 1 + len(w)], axis=1)
    p, slopes = p[:, 0], (above - below) / 2e-6
    weight[(p < LEAST_P[dtype]) | (p > 1 - LEAST_P[dtype])] = 0.0
    recalled = reviews.recalled[rows]
    likely = np.clip(np.where(recalled, p, 1 - p), SMALLEST_P, LARGEST_P)
    # Where nothing counts, p may be 0 or 1.
    precision = weight / np.where(weight > 0, p * (1 - p), 1.0)
    of_p = precision * (p - recalled)
    loss, gradient = -(weight * np.log(likely)).sum(), of_p @ slopes
    information = (slopes * precision[:, None]).T @ slopes
    # Rounding errors are proportional to the sums of the absolute parts of the gradient.
    shares = np.abs(slopes * of_p[:, None]).sum(axis=0)
    packed = pack(reviews, rows, weight=weight, dtype=dtype)
    tolerance, of_gradient, of_information, slack = TOLERANCE[dtype]
    fisher = model.fisher(w, packed)
    for result in (model.gradient(w, packed), fisher):
        np.testing.assert_allclose(result.loss, loss, rtol=tolerance, atol=1e-300)
        error = np.abs(result.gradient - gradient)
        # What is small beside the largest need not be right to as many digits of its own.
        room = shares + slack * shares.max(initial=0)
        np.testing.assert_array_less(error, of_gradient * room + 1e-9)
    scale = np.sqrt(np.diag(information))
    scale += slack * scale.max(initial=0)
    error = np.abs(fisher.information - information)
    np.testing.assert_array_less(error, of_information * np.outer(scale, scale) + 1e-9)
    np.testing.assert_allclose(fisher.information, fisher.information.T, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_models_are_those_of_numpy_and_of_differences(name):
    equations = PUBLISHED[name]
    # With other seeds FSRSv2 may be where it begins, at the edge of a clip, without a slope.
    for seed, exponent in enumerate((1.0, 2.0, 4.6), 6):
        rng = np.random.default_rng(seed)
        log, w = random_log(rng, 20, 20, exponent=exponent), random_parameters(equations, rng)
        # How a review at p near 1 moves stability is a difference of nearly equal numbers.
        assert_walk_is_numpys(compiled(equations), w, log, rtol=1e-10)
        assert_derivatives_are_differences(compiled(equations), w, log, seed, DTYPES[seed % 2])


UNUSUAL = {
    "every operation": {
        "state_names": ("a", "b"),
        "init": lambda m, w, r: (m.where(r == 2, w[0] ** 2, m.where(r != 4, w[1], 2.0)), 1.0),
        "step": lambda m, w, s, t, r, p: (
            m.clip(m.where(r <= 1, s[0] ** -1 * p, m.maximum(s[0], w[0] * t / (3 + t))), 0.05, 9),
            m.minimum(
                0.4 + s[1] ** 0.5 + m.rint(r * 0.7) / 3,
                m.where(s[0] < s[1], 2 ** (w[2] + p), (1 + s[0]) ** w[3] - w[2] * s[1]) ** 2 + 0.1,
            ),
        ),
        "curve": lambda m, w, s, t: (
            0.02
            + 0.96 / (1 + m.exp(w[2] * m.log(1 + t) - s[0] / s[1] - m.where(t >= 3, -w[3], w[1])))
        ),
        "parameters": space_of((0.6, 0.9, 0.4, 0.3)),
    },
    "a choice by parameters of what varies": {
        "curve": lambda m, w, s, t: m.exp(-m.where(w[0] <= 1, t / 9, t / 40) * w[1]),
        "parameters": space_of((0.7, 0.4)),
    },
    "parameters that move nothing, a state never read, and influence from state to state": {
        "state_names": ("a", "b", "c", "unread"),
        "init": lambda m, w, r: (w[0], 0.5, 0.5, w[2]),
        "step": lambda m, w, s, t, r, p: (s[0], s[0] * w[1], s[1], s[3] * w[2]),
        "curve": lambda m, w, s, t: m.exp(-s[2] * t / 20),
        "parameters": space_of((0.3, 0.7, 0.9)),
    },
    "a constant": {},
}


@pytest.mark.parametrize("given", UNUSUAL.values(), ids=UNUSUAL)
def test_what_is_unusual_is_computed_right(given):
    model = small_model(**given)
    rng, defaults = np.random.default_rng(1), np.array(model.equations.parameters.defaults)
    for far in (0, 0.1, 0.2):
        w = defaults + far * rng.standard_normal(len(defaults))
        assert_walk_is_numpys(model, w, REVIEWS)
        for dtype in DTYPES:
            assert_derivatives_are_differences(model, w, REVIEWS, 3, dtype)


GRAPH = M = Graph()
X = GRAPH.leaf("state", 0)


@pytest.mark.parametrize(
    ("error", "write"),
    [
        (ValueError, lambda: trace(SmallEquations(step=lambda m, w, s, t, r, p: ()))),
        (TypeError, lambda: trace(SmallEquations(init=lambda m, w, r: (r > 1,)))),
        (TypeError, lambda: trace(SmallEquations(init=lambda m, w, r: (1.0 if r > 1 else 2.0,)))),
        (IndexError, lambda: trace(SmallEquations(curve=lambda m, w, s, t: w[1]))),
        *((TypeError, lambda: X > 1 and 1), (TypeError, lambda: not X > 1)),
        *((TypeError, lambda: (X > 1) * 2), (TypeError, lambda: M.minimum(X, X > 2))),
        (TypeError, lambda: M.where(X - 1, X, 0.0)),
    ],
)
def test_branches_conditions_as_values_and_wrong_numbers_of_states_are_refused(error, write):
    with pytest.raises(error, match=r"SmallEquations|m\.where"):
        write()


@pytest.mark.parametrize("dtype", DTYPES)
def test_loss_ends_where_single_precision_does(dtype):
    certain = small_model(curve=lambda m, w, s, t: m.where(t > 1, 1.0, 0.0) + 0 * w[0])
    reviews = log_of([1, 2, 2, 1], [0, 0, 0, 5], rating=[3, 3, 3, 1])
    packed = pack(reviews, np.array([2, 3]), dtype=dtype)
    expected = -np.log(1 - LARGEST_P) - np.log(SMALLEST_P)
    assert certain.gradient(np.array([0.5]), packed).loss == pytest.approx(expected, rel=1e-5)


def test_rows_of_any_order_are_predicted_and_as_many_parameters_as_there_are_needed():
    equations = PUBLISHED["FSRS-6"]
    model = RecurrentModel(equations, equations.parameters.defaults)
    everything = np.arange(len(REVIEWS))
    p = model.predict(REVIEWS, everything)
    for rows in ([50, 30, 31], everything[-1:], [30, 30]):
        np.testing.assert_array_equal(model.predict(REVIEWS, np.array(rows)), p[rows])
    constant = RecurrentModel(SmallEquations(parameters=space_of(())), ())
    curves = constant.predict_at(REVIEWS, ROWS, np.ones((len(ROWS), 3)))
    np.testing.assert_array_equal(curves, np.full((len(ROWS), 3), 0.9))
    for parameters in ((), (*model.parameters, 3.0)):
        with pytest.raises(FitError):
            RecurrentModel(equations, parameters)
