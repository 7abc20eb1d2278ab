"""Formulas as graphs: recorded once, folded, simplified without changing their values."""

import math

import pytest

from srs_eval.engine.expressions import Graph, TracingMaths, fixed_inputs
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.engine.tracing import trace


@pytest.fixture
def graph():
    return Graph()


@pytest.fixture
def m(graph):
    return TracingMaths(graph)


@pytest.fixture
def x(graph):
    return graph.leaf("state", 0)


@pytest.fixture
def w(graph):
    return graph.leaf("parameter", 0)


def is_number(expression, value):
    return expression.operation == "number" and expression.value == value


def test_equal_parts_are_recorded_once(m, x, w):
    first = m.exp(x * w) + m.log(x)
    recorded = len(x.graph.nodes)
    assert m.exp(x * w) + m.log(x) is first
    assert len(x.graph.nodes) == recorded


def test_plain_numbers_are_folded(graph, m):
    two = graph.constant(2.0)
    assert is_number(two * 3 + 1, 7.0)
    assert is_number(2**two - 1 / two, 3.5)
    assert is_number(m.exp(m.log(two)), 2.0)
    assert is_number(m.log(1.0), 0.0)
    assert is_number(two**0.5, math.sqrt(2))
    assert is_number(m.clip(7.0, 1, 3), 3.0)
    assert is_number(m.minimum(2, 1), 1.0)
    assert [m.rint(value).value for value in (0.5, 1.5, 2.4, -0.6)] == [0.0, 2.0, 2.0, -1.0]


@pytest.mark.parametrize(
    "same",
    [
        lambda m, x: x + 0,
        lambda m, x: 0 + x,
        lambda m, x: x - 0,
        lambda m, x: x * 1,
        lambda m, x: 1 * x,
        lambda m, x: x / 1,
        lambda m, x: m.exp(m.log(x)),
        lambda m, x: 0 - (-x),
        lambda m, x: x * -1 * -1,
        lambda m, x: x**1,
        lambda m, x: m.log(m.exp(x)),
    ],
)
def test_what_changes_nothing_is_left_out(m, x, same):
    assert same(m, x) is x


def test_powers_avoid_logarithms_where_they_can(m, x, w):
    for exponent, operation in ((2, "multiply"), (0.5, "sqrt"), (-1, "divide")):
        assert (x**exponent).operation == operation
    assert (x**w).operation == "exp"
    assert (0.9**x).operands[0].operation == "multiply"  # by a number that is folded


def test_a_number_that_cannot_be_folded_is_not_taken_for_zero(graph, m, x):
    endless = m.exp(graph.constant(1000.0))
    assert endless.operation == "exp"
    assert (endless + x).operation == "add"
    assert (x * endless).operation == "multiply"
    assert not is_number(endless + 1, 1.0)
    assert (x / m.log(graph.constant(0.0))).operation == "divide"


def test_fixed_inputs_are_computed_beforehand_but_conditions_are_not(m, x, w):
    outside, inside = m.exp(w), w * 3
    output = m.where(w > 1, x * outside, x + inside)
    assert [e.number for e in fixed_inputs([output])] == sorted(
        e.number for e in (w, outside, inside)
    )


@pytest.mark.parametrize("branch", [lambda x: x and 1, lambda x: not x, lambda x: 1 if x else 2])
def test_branching_on_a_value_says_what_to_do(x, branch):
    with pytest.raises(TypeError, match=r"m\.where\(condition, yes, no\)"):
        branch(x > 1)


@pytest.mark.parametrize(
    "misplaced",
    [
        lambda m, x: (x > 1) * 2,
        lambda m, x: 1 - (x == 1),
        lambda m, x: m.exp(x <= 1),
        lambda m, x: m.where(x > 1, x < 3, 0.0),
        lambda m, x: m.where(x - 1, x, 0.0),
        lambda m, x: m.minimum(x, x > 2),
    ],
)
def test_conditions_and_values_are_told_apart(m, x, misplaced):
    with pytest.raises(TypeError, match=r"first argument of m\.where"):
        misplaced(m, x)


def test_a_condition_is_no_state():
    class Wrong:
        state_names = ("passed",)
        parameters = ParameterSpace((), (), ())

        def init(self, m, w, rating):
            return (rating > 1,)

        def curve(self, m, w, state, elapsed):
            return 0.9

        def step(self, m, w, state, elapsed, rating, p):
            return state

    with pytest.raises(TypeError):
        trace(Wrong())
