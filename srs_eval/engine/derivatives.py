"""Derivatives of traced formulas, as formulas."""

from __future__ import annotations

from collections.abc import Iterable

from srs_eval.engine.expressions import Expression, Graph

# Keeps the slope of a square root finite where its argument is 0.
_SMALLEST_ROOT = 1e-18


def adjoints(
    graph: Graph, seeds: Iterable[tuple[Expression, Expression]], *, kind: str
) -> dict[int, Expression]:
    """Differentiate ``sum of seed * output`` by everything it is made of (reverse mode).

    `seeds` are pairs of an output and the derivative of the final result by it. Derivatives are by
    the number of the expression; absent where zero. Expressions of another `kind` get their
    derivative, but nothing they are made of does: ``varying`` stops at expressions of parameters
    alone, whose own derivatives are worth taking once and not for every review.
    """
    found: dict[int, Expression] = {}

    def add(expression: Expression, derivative: Expression) -> None:
        if expression.kind != "number":
            number = expression.number
            found[number] = found[number] + derivative if number in found else derivative

    highest = -1
    for output, seed in seeds:
        add(output, seed)
        highest = max(highest, output.number)
    for number in range(highest, -1, -1):
        if number in found and graph.nodes[number].kind == kind:
            for operand, derivative in _operand_derivatives(graph.nodes[number], found[number]):
                add(operand, derivative)
    zero = graph.constant(0.0)
    return {number: value for number, value in found.items() if value is not zero}


def _operand_derivatives(
    made: Expression, by_it: Expression
) -> list[tuple[Expression, Expression]]:
    """Chain rule: derivatives by the operands of `made`, given the one by `made` itself."""
    a, b, c = (*made.operands, None, None, None)[:3]
    graph = made.graph
    if a is None or made.operation in ("rint", "less", "at_most", "equal"):
        return []
    if b is None:
        return [(a, _slope(made, a, by_it))]
    if made.operation == "add":
        return [(a, by_it), (b, by_it)]
    if made.operation == "subtract":
        return [(a, by_it), (b, -by_it)]
    if made.operation == "multiply":
        return [(a, by_it * b), (b, by_it * a)]
    if made.operation == "divide":
        share = by_it / b
        return [(a, share), (b, -(share * made))]
    zero = graph.constant(0.0)
    if c is not None:  # a choice: only what is chosen has an influence
        select = graph.make("select", a, by_it, zero), graph.make("select", a, zero, by_it)
        return [(b, select[0]), (c, select[1])]
    second = b < a if made.operation == "minimum" else a < b
    return [
        (a, graph.make("select", second, zero, by_it)),
        (b, graph.make("select", second, by_it, zero)),
    ]


def _slope(made: Expression, a: Expression, by_it: Expression) -> Expression:
    """Chain rule for functions of one argument."""
    if made.operation == "negate":
        return -by_it
    if made.operation == "exp":
        return by_it * made
    if made.operation == "log":
        return by_it / a
    assert made.operation == "sqrt", made.operation
    return by_it * 0.5 / made.graph.make("maximum", made, _SMALLEST_ROOT)
