"""From a model's equations to one graph: state, prediction, update and loss of a review."""

from __future__ import annotations

from dataclasses import dataclass

from srs_eval.engine.derivatives import adjoints
from srs_eval.engine.equations import Equations
from srs_eval.engine.expressions import Expression, Graph, TracingMaths

# Predictions enter the loss between these bounds: 32-bit numbers end and are spaced so.
SMALLEST_P, LARGEST_P = 1e-37, 1.0 - 2.0**-22

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
    # The same as the public trainer has them; they differ where p is nearly 0 or 1
    public_loss: Expression
    public_loss_slope: Expression

    @property
    def facts(self) -> tuple[Expression, Expression, Expression]:
        """What is read of a review."""
        return self.elapsed, self.rating, self.weight


def trace(equations: Equations) -> Traced:
    """Run the equations on expressions."""
    graph = Graph()
    m = TracingMaths(graph)
    w = tuple(graph.leaf("parameter", index) for index in range(len(equations.parameters)))
    state = tuple(graph.leaf("state", index) for index in range(len(equations.state_names)))
    elapsed, rating, weight = (
        graph.leaf("review", name) for name in ("elapsed", "rating", "weight")
    )
    init = _expressions(graph, _tuple(equations, "init", equations.init(m, w, rating)))
    p = _expressions(graph, (equations.curve(m, w, state, elapsed),))[0]
    after = equations.step(m, w, state, elapsed, rating, p)
    step = _expressions(graph, _tuple(equations, "step", after))
    for what, values in (("init", init), ("step", step)):
        if len(values) != len(state):
            raise ValueError(
                f"{type(equations).__name__}.{what} returned {len(values)} values, "
                f"state_names has {len(state)}"
            )
    recalled = rating > 1.5
    clipped = m.clip(p, SMALLEST_P, LARGEST_P)
    of_outcome = m.where(recalled, clipped, 1.0 - clipped)
    loss = -m.log(of_outcome)
    slope = m.where(recalled, -1.0, 1.0) / of_outcome
    inside = m.where(p < SMALLEST_P, 0.0, m.where(p > LARGEST_P, 0.0, slope))
    certainly_wrong = m.where(recalled, p, 1.0 - p) < SMALLEST_P
    variance = m.maximum(p * (1.0 - p), _PUBLIC_SMALLEST_VARIANCE)
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
        loss_slope=weight * inside,
        public_loss=weight * m.where(certainly_wrong, _PUBLIC_MOST_LOSS, loss),
        public_loss_slope=weight * (p - m.where(recalled, 1.0, 0.0)) / variance,
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
    traced: Traced, quantities: tuple[Expression, ...]
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
