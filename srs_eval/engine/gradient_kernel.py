"""The kernel for the weighted loss and its gradient.

Each block is walked forwards, keeping states and costly intermediate results, and then
backwards, carrying the derivatives of the loss by the state (reverse mode).
"""

from __future__ import annotations

from collections.abc import Sequence

from srs_eval.engine.assembly import Precision
from srs_eval.engine.expressions import Expression, needed
from srs_eval.engine.kernel_writer import KernelCode, KernelWriter, Totals
from srs_eval.engine.tracing import Traced, adjoints, parameter_derivatives

# Worth keeping for the walk back; everything else is cheaper computed again.
_COSTLY = frozenset({"exp", "log", "divide", "sqrt"})


class GradientFormulas:
    """The formulas of both walks."""

    def __init__(self, traced: Traced) -> None:
        graph = traced.graph
        # derivatives of the loss of all later reviews by the state after this one
        self.after = tuple(graph.leaf("adjoint", index) for index in range(len(traced.states)))
        seeds = [(traced.p, traced.loss_slope), *zip(traced.step, self.after, strict=True)]
        by_step = adjoints(graph, seeds, kind="varying")
        by_init = adjoints(graph, list(zip(traced.init, self.after, strict=True)), kind="varying")
        numbers = sorted(by_step.keys() | by_init.keys())
        self.fixed = [graph.nodes[n] for n in numbers if graph.nodes[n].kind == "parameter"]
        # derivatives by the numbers of `fixed`, from a further and from a first review
        self.step = {e.number: by_step[e.number] for e in self.fixed if e.number in by_step}
        self.init = {e.number: by_init[e.number] for e in self.fixed if e.number in by_init}
        zero = graph.constant(0.0)
        self.before = tuple(by_step.get(state.number, zero) for state in traced.states)
        # what each walk computes for a review, and the walk forwards keeps for the other
        self.forward = (traced.loss, *traced.step)
        self.backward = (*self.step.values(), *self.before)
        self.kept = (*traced.states, *_kept(self.forward, self.backward))


def gradient_kernel(traced: Traced, precision: Precision) -> KernelCode:
    """Write the kernel; its numbers are the loss, then its derivatives by the parameters."""
    formulas = GradientFormulas(traced)
    kept = formulas.kept
    outputs = (*formulas.forward, *formulas.backward, *formulas.init.values(), *traced.init)
    writer = KernelWriter(
        traced, outputs, precision, parameter_derivatives(traced, tuple(formulas.fixed))
    )
    code, count = writer.code, 1 + len(formulas.fixed)
    totals = Totals(code, count)
    sums, state, slope = map(code.memory, (count, len(traced.states), len(traced.states)))
    with writer.block() as (start, length):
        code.clear(sums, count)
        writer.begin(start, state)
        with writer.walk(start, length, state, (traced.loss,)) as (nth, _, found):
            place = code.times(nth, len(kept))
            code.store_all([found[e.number] for e in kept], "%scratch", place)
            code.accumulate(sums, 0, found[traced.loss.number])
        code.clear(slope, len(traced.states))
        _walk_back(writer, formulas, start, length, sums, slope)
        totals.add(sums)
    _write_gradient(writer, totals.numbers())
    text, numbers = writer.finish(saturating=True), 1 + len(traced.parameters)
    return KernelCode(text, precision, outputs=numbers, scratch=len(kept))


def _walk_back(
    writer: KernelWriter, formulas: GradientFormulas, start: str, length: str, sums: str, slope: str
) -> None:
    """Add the derivatives of a block to `sums`; those by the state are carried in `slope`."""
    code = writer.code

    def accumulate(derivatives: dict[int, Expression], found: dict[int, str]) -> None:
        for index, expression in enumerate(formulas.fixed, start=1):
            if expression.number in derivatives:
                code.accumulate(sums, index, found[derivatives[expression.number].number])

    last = code.value(f"sub nsw i64 {length}, 1")
    with code.loop("backward", "0", last) as done:
        nth = code.value(f"sub nsw i64 {last}, {done}")
        place = code.times(nth, len(formulas.kept))
        pointer = code.value(f"getelementptr {code.real}, ptr %scratch, i64 {place}")
        known = code.load_all(formulas.after, slope) | code.load_all(formulas.kept, pointer)
        found = writer.compute(formulas.backward, code.plus(start, nth), known)
        accumulate(formulas.step, found)
        code.store_all([found[e.number] for e in formulas.before], slope)
    found = writer.compute(
        tuple(formulas.init.values()), start, code.load_all(formulas.after, slope)
    )
    accumulate(formulas.init, found)


def _kept(forward: Sequence[Expression], backward: Sequence[Expression]) -> list[Expression]:
    """Choose what the forward walk keeps for the backward one."""
    again = {expression.number for expression in needed(backward)}
    return [
        expression
        for expression in needed(forward)
        if expression.operation in _COSTLY
        and expression.kind == "varying"
        and expression.number in again
    ]


def _write_gradient(writer: KernelWriter, numbers: list[str]) -> None:
    """Apply the chain rule down to the parameters, and write the results."""
    scalar = writer.scalar
    scalar.store(numbers[0], "%out", 0)
    for parameter in range(len(writer.traced.parameters)):
        total = scalar.constant(0.0)
        for number, slopes in zip(numbers[1:], writer.slopes, strict=True):
            if parameter in slopes:
                total = scalar.add(total, scalar.multiply(number, slopes[parameter]))
        scalar.store(total, "%out", parameter + 1)
