"""The kernel for the weighted loss and its gradient.

Each block is walked forwards, keeping states and costly intermediate results, and then
backwards, carrying the derivatives of the loss by the state (reverse mode).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from srs_eval.engine.assembly import Precision
from srs_eval.engine.expressions import Expression, needed
from srs_eval.engine.kernel_writer import (
    KernelCode,
    KernelWriter,
    Totals,
    accumulate,
    clear,
    load_all,
    store_all,
)
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


@dataclass(frozen=True, slots=True)
class _Memory:
    """Where vectors are kept: sums of a block, the state, and derivatives by the state."""

    sums: str
    state: str
    slope: str


def gradient_kernel(traced: Traced, precision: Precision) -> KernelCode:
    """Write the kernel; its numbers are the loss, then its derivatives by the parameters."""
    formulas = GradientFormulas(traced)
    chain = parameter_derivatives(traced, tuple(formulas.fixed))
    outputs = (*formulas.forward, *formulas.backward, *formulas.init.values(), *traced.init)
    writer = KernelWriter(traced, outputs, precision, chain)
    code = writer.code
    count = 1 + len(formulas.fixed)
    totals = Totals(code, count)
    states = len(traced.states)
    memory = _Memory(code.memory(count), code.memory(states), code.memory(states))
    with writer.block() as (start, length):
        clear(code, memory.sums, count)
        writer.first_states(start, memory.state)
        _walk_forwards(writer, formulas, memory, start, length)
        clear(code, memory.slope, states)
        _walk_backwards(writer, formulas, memory, start, length)
        totals.add(memory.sums)
    _write_gradient(writer, totals.numbers())
    text = writer.finish(saturating=True)
    return KernelCode(
        text, precision, outputs=1 + len(traced.parameters), scratch=len(formulas.kept)
    )


def _walk_forwards(
    writer: KernelWriter, formulas: GradientFormulas, memory: _Memory, start: str, length: str
) -> None:
    code, traced = writer.code, writer.traced
    with code.loop("forward", "1", length) as nth:
        review = code.value(f"add nsw i64 {start}, {nth}")
        known = load_all(code, traced.states, memory.state)
        found = writer.compute(formulas.forward, review, known)
        place = code.value(f"mul nsw i64 {nth}, {len(formulas.kept)}")
        store_all(code, [found[e.number] for e in formulas.kept], "%scratch", place)
        accumulate(code, memory.sums, 0, found[traced.loss.number])
        store_all(code, [found[e.number] for e in traced.step], memory.state)


def _walk_backwards(
    writer: KernelWriter, formulas: GradientFormulas, memory: _Memory, start: str, length: str
) -> None:
    code = writer.code
    last = code.value(f"sub nsw i64 {length}, 1")
    with code.loop("backward", "0", last) as done:
        nth = code.value(f"sub nsw i64 {last}, {done}")
        review = code.value(f"add nsw i64 {start}, {nth}")
        place = code.value(f"mul nsw i64 {nth}, {len(formulas.kept)}")
        pointer = code.value(f"getelementptr {code.real}, ptr %scratch, i64 {place}")
        known = load_all(code, formulas.after, memory.slope)
        known |= load_all(code, formulas.kept, pointer)
        found = writer.compute(formulas.backward, review, known)
        _accumulate_all(writer, memory.sums, formulas, formulas.step, found)
        store_all(code, [found[e.number] for e in formulas.before], memory.slope)
    known = load_all(code, formulas.after, memory.slope)
    found = writer.compute(tuple(formulas.init.values()), start, known)
    _accumulate_all(writer, memory.sums, formulas, formulas.init, found)


def _accumulate_all(
    writer: KernelWriter,
    sums: str,
    formulas: GradientFormulas,
    derivatives: dict[int, Expression],
    found: dict[int, str],
) -> None:
    for index, expression in enumerate(formulas.fixed):
        if expression.number in derivatives:
            value = found[derivatives[expression.number].number]
            accumulate(writer.code, sums, index + 1, value)


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
