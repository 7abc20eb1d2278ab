"""Unusual but honest models: what authors may write, and what they are told otherwise."""

import numpy as np
import pytest
from agreement import expectation, kernels_agree, walk_agrees
from cases import rest_nightly
from random_logs import further_rows, log_of, random_log
from small_models import SmallEquations, small_model, space_of

from srs_eval.engine.compiled import CompiledModel, compiled
from srs_eval.engine.packing import pack
from srs_eval.engine.tracing import LARGEST_P, SMALLEST_P, trace

REVIEWS = random_log(np.random.default_rng(5), 20, 12, exponent=1.3)
ROWS = further_rows(REVIEWS)

HONEST = {
    "a choice by parameters alone": {
        "curve_of": lambda m, w, s, t: m.where(w[0] > w[1], 0.8, 0.9 - 0.1 / (1 + t)) - 0.1 * w[0],
        "space": space_of((0.7, 0.4)),
    },
    "a choice by parameters of what varies": {
        "curve_of": lambda m, w, s, t: m.exp(-m.where(w[0] <= 1, t / 9, t / 40) * w[1]),
        "space": space_of((0.7, 0.4)),
    },
    "a choice by plain numbers": {
        "curve_of": lambda m, w, s, t: m.where(1 < 2, m.exp(-w[0] * t / 30), 2.0),
    },
    "states that are plain numbers": {
        "state_names": ("a", "b"),
        "init_of": lambda m, w, r: (1, 2.5),
        "step_of": lambda m, w, s, t, r, p: (0.5, s[1]),
        "curve_of": lambda m, w, s, t: m.exp(-w[0] * t / (20 * s[0] + s[1])),
    },
    "a state that only parameters set": {
        "init_of": lambda m, w, r: (w[0],),
        "step_of": lambda m, w, s, t, r, p: (w[0] * w[1],),
        "curve_of": lambda m, w, s, t: m.exp(-s[0] * t / 20),
        "space": space_of((0.3, 0.7)),
    },
    "a parameter without influence": {
        "curve_of": lambda m, w, s, t: m.exp(-w[2] * t / 20),
        "space": space_of((0.3, 0.7, 0.9)),
    },
    "a parameter that moves nothing but a state that is never read": {
        "state_names": ("read", "unread"),
        "init_of": lambda m, w, r: (w[1], w[0]),
        "step_of": lambda m, w, s, t, r, p: (s[0] * 1.1, s[1] * w[0]),
        "curve_of": lambda m, w, s, t: m.exp(-s[0] * t / 20),
        "space": space_of((0.3, 0.7)),
    },
    "influence that passes from state to state": {
        "state_names": ("a", "b", "c"),
        "init_of": lambda m, w, r: (w[0], 0.5, 0.5),
        "step_of": lambda m, w, s, t, r, p: (s[0], s[0] * w[1], s[1]),
        "curve_of": lambda m, w, s, t: m.exp(-s[2] * t / 20),
        "space": space_of((0.3, 0.7)),
    },
    "nothing but rounding": {
        "init_of": lambda m, w, r: (m.rint(r * 0.7),),
        "step_of": lambda m, w, s, t, r, p: (s[0] + m.rint(r * 0.3 + 2.6) - 2,),
        "curve_of": lambda m, w, s, t: m.exp(-w[0] * t / (20 * s[0])),
    },
    "no parameters": {
        "curve_of": lambda m, w, s, t: m.exp(-t / 30) * 0.9 + 0.05,
        "space": space_of(()),
    },
    "a constant": {"curve_of": lambda m, w, s, t: 0.9},
}


@pytest.mark.parametrize("given", rest_nightly(HONEST.values(), 3), ids=HONEST)
def test_what_is_unusual_is_computed_right(given):
    equations = SmallEquations(**given)
    w = np.array(equations.parameters.defaults)
    model = CompiledModel(equations)
    walk_agrees(model, w, REVIEWS)
    for dtype in (np.float64, np.float32):
        expected, rows, weight = expectation(equations, w, REVIEWS, 3, dtype)
        assert weight.sum() > 5
        kernels_agree(model, w, REVIEWS, rows, weight, expected, dtype)


@pytest.mark.parametrize(
    ("part", "function"),
    [
        ("init", {"init_of": lambda m, w, r: (1.0, 2.0)}),
        ("step", {"step_of": lambda m, w, s, t, r, p: ()}),
    ],
)
def test_a_wrong_number_of_states_is_refused(part, function):
    with pytest.raises(
        ValueError, match=rf"SmallEquations\.{part} returned \d values, state_names has 1"
    ):
        trace(SmallEquations(**function))


def test_branching_on_a_rating_is_refused():
    with pytest.raises(TypeError, match=r"use m\.where"):
        trace(SmallEquations(init_of=lambda m, w, r: (1.0 if r > 1 else 2.0,)))


def test_weights_multiply_and_leave_out():
    model = small_model(curve_of=lambda m, w, s, t: m.exp(-w[0] * t / 30))
    weight = np.random.default_rng(0).uniform(0, 2, len(ROWS))
    w = np.array([0.5])

    def fisher(rows, weight):
        return model.fisher(w, pack(REVIEWS, rows, weight=weight))

    whole = fisher(ROWS, weight)
    parts = [fisher(ROWS[some], weight[some]) for some in (slice(0, 9), slice(9, None))]
    for index in range(3):
        np.testing.assert_allclose(
            whole[index], sum(part[index] for part in parts), rtol=1e-12, atol=1e-12
        )
        np.testing.assert_allclose(
            fisher(ROWS, 3 * weight)[index], 3 * whole[index], rtol=1e-12, atol=1e-12
        )


def test_loss_ends_where_single_precision_does():
    certain = small_model(curve_of=lambda m, w, s, t: m.where(t > 1, 1.0, 0.0) + 0 * w[0])
    reviews = log_of([1, 1, 2, 2], [3, 1, 3, 3], [0, 5, 0, 0])
    for dtype in (np.float32, np.float64):
        packed = pack(reviews, np.array([1, 3]), weight=np.ones(2), dtype=dtype)
        loss = certain.gradient(np.array([0.5]), packed).loss
        expected = -np.log(1 - LARGEST_P) - np.log(SMALLEST_P)
        assert loss == pytest.approx(expected, rel=1e-5)


def test_equal_equations_share_their_functions():
    given = {"curve_of": HONEST["a constant"]["curve_of"]}
    assert compiled(SmallEquations(**given)) is compiled(SmallEquations(**given))
    assert compiled(SmallEquations(**given)) is not compiled(SmallEquations())
