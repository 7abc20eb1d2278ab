"""Kernels against the equations on plain numbers, and their derivatives against differences."""

from dataclasses import dataclass

import numpy as np
import pytest
from differences import oracle, plain_walk
from published import PUBLISHED, random_parameters
from random_logs import further_rows, log_of, random_log
from small_models import SmallEquations, small_model, space_of

from srs_eval.engine.compiled import compiled
from srs_eval.engine.expressions import Graph
from srs_eval.engine.packing import pack
from srs_eval.engine.tracing import LARGEST_P, SMALLEST_P, trace

DTYPES = [np.float64, np.float32]
# Nearer to 0 or 1, a rounding error of p is no small error of the loss.
LEAST_P = {np.float64: 1e-4, np.float32: 0.02}
# Of loss, gradient and information, and share of the largest that counts for the others.
TOLERANCE = {np.float64: (1e-9, 1e-5, 1e-4, 1e-3), np.float32: (1e-4, 1e-4, 1e-3, 0.03)}
REVIEWS = random_log(np.random.default_rng(5), 20, 12, exponent=1.3)
ROWS = further_rows(REVIEWS)


def assert_walk_is_numpys(model, w, reviews, rtol=1e-12):
    """Check predictions and states."""
    packed = pack(reviews)
    p, states = model.walk(w, packed)
    with np.errstate(all="ignore"):
        moments = plain_walk(model.equations, w, reviews)
    for moment in moments:
        place, lane = np.divmod(packed.where[moment.rows], p.shape[1])
        for index, expected in enumerate(moment.state):
            np.testing.assert_allclose(states[place, index, lane], expected, rtol=rtol)
        expected = np.nan if moment.p is None else moment.p
        np.testing.assert_allclose(p[place, lane], expected, rtol=rtol, atol=1e-12)


def assert_derivatives_are_differences(model, w, reviews, seed, dtype):
    """Check loss, gradient and Fisher information of rows and weights that are chosen here."""
    rng = np.random.default_rng(seed)
    rows = further_rows(reviews)
    rows = rows[rng.random(len(rows)) < 0.8] if len(rows) > 5 else rows
    weight = rng.uniform(0.2, 2.0, len(rows)).astype(np.float32).astype(float)
    expected = oracle(model.equations, w, reviews, rows, weight, LEAST_P[dtype])
    packed = pack(reviews, rows, weight=expected.weight, dtype=dtype)
    tolerance, of_gradient, of_information, slack = TOLERANCE[dtype]
    fisher = model.fisher(w, packed)
    for found in (model.gradient(w, packed), fisher):
        np.testing.assert_allclose(found.loss, expected.loss, rtol=tolerance, atol=1e-300)
        error = np.abs(found.gradient - expected.gradient)
        # What is small beside the largest need not be right to as many digits of its own.
        shares = expected.shares + slack * expected.shares.max(initial=0)
        np.testing.assert_array_less(error, of_gradient * shares + 1e-9)
    scale = np.sqrt(np.diag(expected.information))
    scale += slack * scale.max(initial=0)
    scales = np.outer(scale, scale)
    error = np.abs(fisher.information - expected.information)
    np.testing.assert_array_less(error, of_information * scales + 1e-9)
    error = np.abs(fisher.information - fisher.information.T)
    np.testing.assert_array_less(error, 1e-14 * scales + 1e-300)


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


HONEST = {
    "every operation": {
        "state_names": ("a", "b"),
        "init_of": lambda m, w, r: (m.where(r == 2, w[0] ** 2, m.where(r != 4, w[1], 2.0)), 1.0),
        "step_of": lambda m, w, s, t, r, p: (
            m.clip(
                m.where(r <= 1, s[0] ** -1 * p, m.maximum(s[0], w[0] * t / (3 + t))), 0.05, 20.0
            ),
            m.minimum(
                0.4 + s[1] ** 0.5 + m.rint(r * 0.7) / 3,
                m.where(s[0] < s[1], 2 ** (w[2] + p), (0.3 + s[0]) ** w[3] - w[2] * s[1]) ** 2
                + 0.1,
            ),
        ),
        "curve_of": lambda m, w, s, t: (
            0.02
            + 0.96 / (1 + m.exp(w[2] * m.log(1 + t) - s[0] / s[1] - m.where(t >= 3, -w[3], w[1])))
        ),
        "space": space_of((0.6, 0.9, 0.4, 0.3)),
    },
    "a choice by parameters of what varies": {
        "curve_of": lambda m, w, s, t: m.exp(-m.where(w[0] <= 1, t / 9, t / 40) * w[1]),
        "space": space_of((0.7, 0.4)),
    },
    "parameters that move nothing, and a state that is never read": {
        "state_names": ("read", "unread"),
        "init_of": lambda m, w, r: (w[1], w[0]),
        "step_of": lambda m, w, s, t, r, p: (s[0] * 1.1, s[1] * w[0]),
        "curve_of": lambda m, w, s, t: m.exp(-s[0] * t / 20),
        "space": space_of((0.3, 0.7, 0.9)),
    },
    "influence that passes from state to state": {
        "state_names": ("a", "b", "c"),
        "init_of": lambda m, w, r: (w[0], 0.5, 0.5),
        "step_of": lambda m, w, s, t, r, p: (s[0], s[0] * w[1], s[1]),
        "curve_of": lambda m, w, s, t: m.exp(-s[2] * t / 20),
        "space": space_of((0.3, 0.7)),
    },
    "no parameters": {
        "curve_of": lambda m, w, s, t: m.exp(-t / 30) * 0.9 + 0.05,
        "space": space_of(()),
    },
    "a constant": {"curve_of": lambda m, w, s, t: 0.9},
}


@pytest.mark.parametrize("given", HONEST.values(), ids=HONEST)
def test_what_is_unusual_is_computed_right(given):
    model = small_model(**given)
    rng, defaults = np.random.default_rng(1), np.array(model.equations.parameters.defaults)
    for far in (0, 0.1, 0.2):
        w = defaults + far * rng.standard_normal(len(defaults))
        assert_walk_is_numpys(model, w, REVIEWS)
        for dtype in DTYPES:
            assert_derivatives_are_differences(model, w, REVIEWS, 3, dtype)


@pytest.mark.parametrize(
    ("error", "given"),
    [
        (ValueError, {"step_of": lambda m, w, s, t, r, p: ()}),
        (TypeError, {"init_of": lambda m, w, r: (r > 1,)}),
        (TypeError, {"init_of": lambda m, w, r: (1.0 if r > 1 else 2.0,)}),
        (IndexError, {"curve_of": lambda m, w, s, t: w[1]}),
    ],
)
def test_a_wrong_number_of_states_conditions_as_states_and_branches_are_refused(error, given):
    with pytest.raises(error, match=r"SmallEquations|m\.where"):
        trace(SmallEquations(**given))


@pytest.mark.parametrize("dtype", DTYPES)
def test_loss_ends_where_single_precision_does(dtype):
    certain = small_model(curve_of=lambda m, w, s, t: m.where(t > 1, 1.0, 0.0) + 0 * w[0])
    reviews = log_of([1, 1, 2, 2], [3, 1, 3, 3], [0, 5, 0, 0])
    packed = pack(reviews, np.array([1, 3]), weight=np.ones(2), dtype=dtype)
    expected = -np.log(1 - LARGEST_P) - np.log(SMALLEST_P)
    assert certain.gradient(np.array([0.5]), packed).loss == pytest.approx(expected, rel=1e-5)


@dataclass(frozen=True)
class Unequal:
    __hash__ = object.__hash__
    p: float


def test_equal_equations_share_their_functions():
    given = HONEST["a constant"]
    assert compiled(SmallEquations(**given)) is compiled(SmallEquations(**given))
    assert compiled(SmallEquations(**given)) is not compiled(SmallEquations())
    with pytest.raises(TypeError, match="frozen dataclass"):
        compiled(Unequal(0.8))


GRAPH = M = Graph()
X, W = GRAPH.leaf("state", 0), GRAPH.leaf("parameter", 0)
ENDLESS = M.exp(GRAPH.constant(1000.0))


def test_a_number_that_cannot_be_folded_is_not_taken_for_zero():
    made = (ENDLESS, ENDLESS + X, X * ENDLESS, ENDLESS + 1, X / M.log(GRAPH.constant(0.0)))
    assert [each.operation for each in made] == ["exp", "add", "multiply", "add", "divide"]


@pytest.mark.parametrize(
    "misplaced",
    [
        *(lambda: X > 1 and 1, lambda: not X > 1, lambda: 1 if X > 1 else 2),
        *(lambda: (X > 1) * 2, lambda: 1 - (X == 1), lambda: M.exp(X <= 1)),
        *(lambda: M.where(X > 1, X < 3, 0.0), lambda: M.where(X - 1, X, 0.0)),
        lambda: M.minimum(X, X > 2),
    ],
)
def test_branches_on_values_and_conditions_as_values_are_refused(misplaced):
    with pytest.raises(TypeError, match=r"m\.where"):
        misplaced()
