"""From a model's equations to one graph: state, prediction, update and loss, and derivatives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from srs_eval.engine.equations import Equations
from srs_eval.engine.expressions import Expression, Graph

# Predictions enter the loss between these bounds: 32-bit numbers end and are spaced so.
SMALLEST_P, LARGEST_P = 1e-37, 1.0 - 2.0**-22

# Keeps the slope of a square root finite where its argument is 0.
_SMALLEST_ROOT = 1e-18

# The public trainer's loss, PyTorch's binary cross-entropy: no more than this for a review,
_PUBLIC_MOST_LOSS = 100.0
# and with a slope that vanishes where p (1 - p) is smaller than this.
_PUBLIC_SMALLEST_VARIANCE = 1e-12


@dataclass(frozen=True, slots=True)
class Traced:
    """A model as expressions."""

    graph: Graph
    # What the equations call `w` and `state`
    parameters: tuple[Expression, ...]
    states: tuple[Expression, ...]
    # Facts of the review; weight is what its loss counts
    elapsed: Expression
    rating: Expression
    weight: Expression
    init: tuple[Expression, ...]  # State after a first review
    p: Expression  # Prediction at a further review
    step: tuple[Expression, ...]  # State after it
    # Weighted log loss of the prediction, and its derivative by p
    loss: Expression
    loss_slope: Expression

    @property
    def facts(self) -> tuple[Expression, Expression, Expression]:
        """What is read of a review."""
        return self.elapsed, self.rating, self.weight


def trace(equations: Equations, *, public: bool = False) -> Traced:
    """Run the equations on expressions.

    With `public`, the loss is that of the public trainer, which differs where p is nearly 0 or 1.
    """
    graph = Graph()
    w = tuple(graph.leaf("parameter", index) for index in range(len(equations.parameters)))
    state = tuple(graph.leaf("state", index) for index in range(len(equations.state_names)))
    elapsed, rating, weight = (
        graph.leaf("review", name) for name in ("elapsed", "rating", "weight")
    )
    init = _expressions(graph, _tuple(equations, "init", equations.init(graph, w, rating)))
    p = _expressions(graph, (equations.curve(graph, w, state, elapsed),))[0]
    after = equations.step(graph, w, state, elapsed, rating, p)
    step = _expressions(graph, _tuple(equations, "step", after))
    for what, values in (("init", init), ("step", step)):
        if len(values) != len(state):
            raise ValueError(
                f"{type(equations).__name__}.{what} returned {len(values)} values, "
                f"state_names has {len(state)}"
            )
    recalled = rating > 1.5
    clipped = graph.clip(p, SMALLEST_P, LARGEST_P)
    of_outcome = graph.where(recalled, clipped, 1.0 - clipped)
    loss = -graph.log(of_outcome)
    if public:
        certainly_wrong = graph.where(recalled, p, 1.0 - p) < SMALLEST_P
        loss = graph.where(certainly_wrong, _PUBLIC_MOST_LOSS, loss)
        variance = graph.maximum(p * (1.0 - p), _PUBLIC_SMALLEST_VARIANCE)
        slope = (p - graph.where(recalled, 1.0, 0.0)) / variance
    else:
        slope = graph.where(recalled, -1.0, 1.0) / of_outcome
        slope = graph.where(p < SMALLEST_P, 0.0, graph.where(p > LARGEST_P, 0.0, slope))
    return Traced(
        graph,
        w,
        state,
        elapsed,
        rating,
        weight,
        init,
        p,
        step,
        loss=weight * loss,
        loss_slope=weight * slope,
    )


def _tuple(equations: Equations, what: str, values: object) -> tuple[object, ...]:
    if not isinstance(values, tuple | list):
        raise TypeError(
            f"{type(equations).__name__}.{what} must return a tuple with one value for each of "
            f"its state_names, and returned {type(values).__name__}: (value,) if there is one"
        )
    return tuple(values)


def _expressions(graph: Graph, values: tuple[object, ...]) -> tuple[Expression, ...]:
    """Turn plain numbers, which an author may return, into expressions.

    Adding 0 changes nothing, and refuses conditions as all arithmetic does.
    """
    return tuple(
        value + 0.0 if isinstance(value, Expression) else graph.constant(float(value))  # type: ignore[arg-type]
        for value in values
    )


def parameter_derivatives(
    traced: Traced, quantities: Iterable[Expression]
) -> list[dict[int, Expression]]:
    """Differentiate quantities of the parameters alone by each parameter.

    The derivatives of each quantity are by index of the parameter; zeros are left out.
    """
    index = {expression.number: number for number, expression in enumerate(traced.parameters)}
    one = traced.graph.constant(1.0)
    return [
        {
            index[number]: derivative
            for number, derivative in adjoints(
                traced.graph, [(quantity, one)], kind="parameter"
            ).items()
            if number in index
        }
        for quantity in quantities
    ]


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
