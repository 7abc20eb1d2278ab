"""Formulas as graphs: recorded once, folded, simplified without changing their values."""

import math

import pytest

from srs_eval.engine.expressions import Graph, TracingMaths

GRAPH = Graph()
M = TracingMaths(GRAPH)
X, W = GRAPH.leaf("state", 0), GRAPH.leaf("parameter", 0)
ENDLESS = M.exp(GRAPH.constant(1000.0))


def test_plain_numbers_are_folded():
    two = GRAPH.constant(2.0)
    folded = (
        *(two * 3 + 1, 2**two - 1 / two, M.exp(M.log(two)), M.log(1.0), two**0.5),
        *(M.clip(7.0, 1, 3), M.minimum(2, 1), *(M.rint(x) for x in (0.5, 1.5, 2.4, -0.6))),
    )
    assert {expression.operation for expression in folded} == {"number"}
    assert [expression.value for expression in folded] == [
        *(7.0, 3.5, 2.0, 0.0, math.sqrt(2), 3.0, 1.0),
        *(0.0, 2.0, 2.0, -1.0),
    ]


def test_what_changes_nothing_is_left_out():
    same = (X + 0, 0 + X, X - 0, X * 1, 1 * X, X / 1, 0 - (-X), X * -1 * -1, X**1)
    assert all(each is X for each in (*same, M.exp(M.log(X)), M.log(M.exp(X))))


def test_powers_avoid_logarithms_where_they_can():
    for exponent, operation in ((2, "multiply"), (0.5, "sqrt"), (-1, "divide"), (W, "exp")):
        assert (X**exponent).operation == operation
    assert (0.9**X).operands[0].operation == "multiply"  # by a number that is folded


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
