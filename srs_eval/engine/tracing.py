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
    facts: tuple[Expression, ...]  # What is read of a review: elapsed days and
    rating: Expression
    weight: Expression  # Of its loss
    init: tuple[Expression, ...]  # State after a first review
    p: Expression  # Prediction at a further review
    step: tuple[Expression, ...]  # State after it
    # Weighted log loss of the prediction, and its derivative by p
    loss: Expression
    loss_slope: Expression


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
    try:
        init = _states(graph, equations, "init", equations.init(graph, w, rating))
        p = graph.expression(equations.curve(graph, w, state, elapsed)) + 0.0
        after = equations.step(graph, w, state, elapsed, rating, p)
    except IndexError as error:
        raise IndexError(
            f"{type(equations).__name__} reads beyond its {len(w)} parameters, w[0] to "
            f"w[{len(w) - 1}], or its {len(state)} states"
        ) from error
    step = _states(graph, equations, "step", after)
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
    facts, loss, slope = (elapsed, rating, weight), weight * loss, weight * slope
    return Traced(graph, w, state, facts, rating, weight, init, p, step, loss, slope)


def _states(
    graph: Graph, equations: Equations, name: str, values: object
) -> tuple[Expression, ...]:
    """Return what `init` or `step` returned as expressions; refuse what is no state."""
    of, count = type(equations).__name__, len(equations.state_names)
    if not isinstance(values, tuple | list):
        raise TypeError(
            f"{of}.{name} must return a tuple with one value for each of its state_names, "
            f"and returned {type(values).__name__}: (value,) if there is one"
        )
    if len(values) != count:
        raise ValueError(f"{of}.{name} returned {len(values)} values, state_names has {count}")
    # Adding 0 changes nothing, and refuses conditions as all arithmetic does.
    return tuple(graph.expression(value) + 0.0 for value in values)


def adjoints(
    graph: Graph, seeds: Iterable[tuple[Expression, Expression]], *, kind: str
) -> dict[int, Expression]:
    """Differentiate ``sum of seed * output`` by everything it is made of (reverse mode).

    `seeds` are pairs of an output and the derivative of the final result by it. Derivatives are by
    the number of the expression; absent where zero. Expressions of another `kind` get their
    derivative, but nothing they are made of does: ``varying`` stops at expressions of parameters
    alone, whose own derivatives are worth taking once and not for every review.
    """
    derivatives: dict[int, Expression] = {}

    def add(expression: Expression, derivative: Expression) -> None:
        number = expression.number
        if number in derivatives:
            derivative = derivatives[number] + derivative
        if expression.kind != "number":
            derivatives[number] = derivative

    for output, seed in seeds:
        add(output, seed)
    for number in range(max(derivatives, default=-1), -1, -1):
        if number in derivatives and graph.nodes[number].kind == kind:
            for operand, derivative in _chain_rule(graph.nodes[number], derivatives[number]):
                add(operand, derivative)
    zero = graph.constant(0.0)
    return {number: value for number, value in derivatives.items() if value is not zero}


def _chain_rule(y: Expression, by_y: Expression) -> list[tuple[Expression, Expression]]:
    """Return the derivatives by the operands of `y`, from the one by `y` itself."""
    graph, zero = y.graph, y.graph.constant(0.0)
    match y.operation, y.operands:
        case "add", (a, b):
            return [(a, by_y), (b, by_y)]
        case "subtract", (a, b):
            return [(a, by_y), (b, -by_y)]
        case "multiply", (a, b):
            return [(a, by_y * b), (b, by_y * a)]
        case "divide", (a, b):
            share = by_y / b
            return [(a, share), (b, -(share * y))]
        case "negate", (a,):
            return [(a, -by_y)]
        case "exp", (a,):
            return [(a, by_y * y)]
        case "log", (a,):
            return [(a, by_y / a)]
        case "sqrt", (a,):
            return [(a, by_y * 0.5 / graph.maximum(y, _SMALLEST_ROOT))]
        case "select", (condition, a, b):
            return [
                (a, graph.where(condition, by_y, zero)),
                (b, graph.where(condition, zero, by_y)),
            ]
        case "minimum" | "maximum", (a, b):
            second = b < a if y.operation == "minimum" else a < b
            return [(a, graph.where(second, zero, by_y)), (b, graph.where(second, by_y, zero))]
    return []  # of what is rounded or compared, and of what is known from outside
