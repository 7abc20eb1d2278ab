"""The kernel for a Newton step: loss, gradient and Fisher information in one walk.

The derivatives of the state by every quantity of the parameters are carried along (forward
mode); they give those of each prediction. With J = dp / sqrt(p q) and residual
r = (p - y) / sqrt(p q), both times the root of the weight, the gradient is J'r and the Fisher
information J'J: one matrix of products, summed over reviews. The products of a block are
summed at its end, in tiles small enough to stay in the processor's registers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from srs_eval.engine.assembly import Precision
from srs_eval.engine.expressions import Expression, TracingMaths
from srs_eval.engine.kernel_writer import KernelCode, KernelWriter, Totals
from srs_eval.engine.tracing import (
    LARGEST_P,
    SMALLEST_P,
    Traced,
    adjoints,
    parameter_derivatives,
)


@dataclass(frozen=True, slots=True)
class FisherCode:
    """The kernel, and how to read what it writes.

    That is the loss, then the derivatives of the quantities by the parameters (quantities by
    parameters), then the tiles of the lower triangle, row by row.
    """

    kernel: KernelCode
    quantities: int  # of the parameters, that p is differentiated by
    columns: int  # and rows of the matrix of products: the quantities, the residual, filling


class _Forward:
    """The formulas of the walk."""

    def __init__(self, traced: Traced) -> None:
        graph = traced.graph
        one = graph.constant(1.0)
        m = TracingMaths(graph)
        p = m.clip(traced.p, SMALLEST_P, LARGEST_P)
        by_p = adjoints(graph, [(p, one)], kind="varying")
        by_step = [adjoints(graph, [(e, one)], kind="varying") for e in traced.step]
        by_init = [adjoints(graph, [(e, one)], kind="varying") for e in traced.init]
        numbers = sorted({number for found in (by_p, *by_step, *by_init) for number in found})
        candidates = [n for n in numbers if graph.nodes[n].kind == "parameter"]
        influenced = _influenced(traced, by_step, by_init, candidates)
        read = [index for index, state in enumerate(traced.states) if state.number in by_p]
        # the quantities of parameters alone that p is differentiated by
        self.fixed = [
            graph.nodes[n]
            for n in candidates
            if n in by_p or any(n in influenced[index] for index in read)
        ]
        # derivatives of the states by these that can differ from zero
        pairs = [
            (index, quantity.number)
            for quantity in self.fixed
            for index, by in enumerate(influenced)
            if quantity.number in by
        ]
        carried = {pair: graph.leaf("sensitivity", place) for place, pair in enumerate(pairs)}
        zero = graph.constant(0.0)

        def total(derivatives: dict[int, Expression], quantity: int) -> Expression:
            result = derivatives.get(quantity, zero)
            for index, state in enumerate(traced.states):
                if state.number in derivatives and (index, quantity) in carried:
                    result = result + derivatives[state.number] * carried[index, quantity]
            return result

        # the model with these beside the state
        self.traced = replace(
            traced,
            states=(*traced.states, *carried.values()),
            init=(*traced.init, *(by_init[i].get(quantity, zero) for i, quantity in pairs)),
            step=(*traced.step, *(total(by_step[i], quantity) for i, quantity in pairs)),
        )
        scale = graph.make("sqrt", traced.weight / (p * (1.0 - p)))
        residual = m.where(traced.rating > 1.5, p - 1.0, p)
        # J for each quantity, and the residual
        self.columns = [scale * total(by_p, e.number) for e in self.fixed] + [scale * residual]


def _influenced(
    traced: Traced,
    by_step: list[dict[int, Expression]],
    by_init: list[dict[int, Expression]],
    candidates: list[int],
) -> list[set[int]]:
    """Find the candidates that each state can depend on."""
    found = [
        {n for n in candidates if n in step or n in first}
        for step, first in zip(by_step, by_init, strict=True)
    ]
    for _ in traced.states:  # influence passes from state to state
        for own, step in zip(found, by_step, strict=True):
            states = zip(traced.states, found, strict=True)
            own |= {n for state, other in states if state.number in step for n in other}
    return found


def fisher_kernel(traced: Traced, precision: Precision, *, tile: int) -> FisherCode:
    """Write the kernel."""
    forward = _Forward(traced)
    traced, chain = forward.traced, parameter_derivatives(traced, tuple(forward.fixed))
    outputs = (traced.loss, *forward.columns)
    writer = KernelWriter(traced, (*outputs, *traced.step, *traced.init), precision, chain)
    code = writer.code
    columns = -(-len(forward.columns) // tile) * tile
    tiles = (columns // tile) * (columns // tile + 1) // 2
    products = _Products(writer, columns, tile)
    totals = Totals(code, 1)
    loss, state = code.memory(), code.memory(len(traced.states))
    with writer.block() as (start, length):
        code.clear(loss, 1)
        writer.begin(start, state)
        products.start_block()
        with writer.walk(start, length, state, (*outputs, traced.weight)) as (_, _, found):
            code.accumulate(loss, 0, found[traced.loss.number])
            products.keep([found[e.number] for e in forward.columns], found[traced.weight.number])
        products.end_block()
        totals.add(loss)

    scalar = writer.scalar
    scalar.store(totals.numbers()[0], "%out", 0)
    count = len(traced.parameters)
    for index, slopes in enumerate(writer.slopes):
        for parameter in range(count):
            slope = slopes.get(parameter, scalar.constant(0.0))
            scalar.store(slope, "%out", 1 + index * count + parameter)
    products.write(1 + len(forward.fixed) * count)
    kernel = KernelCode(
        writer.finish(saturating=True),
        precision,
        outputs=1 + len(forward.fixed) * count + tiles * tile * tile,
        scratch=columns,
        more_scratch=tiles * tile * tile,
    )
    return FisherCode(kernel, len(forward.fixed), columns)


class _Products:
    """Sums the products of all pairs of columns.

    Scratch memory holds the sums first, then the columns of the reviews of a block.
    """

    def __init__(self, writer: KernelWriter, columns: int, tile: int) -> None:
        self.writer, self.code = writer, writer.code
        self.columns, self.tile = columns, tile
        self.across = columns // tile
        self.sums = self.across * (self.across + 1) // 2 * tile * tile
        self.kept = self.code.memory(kind="i64")
        with self.code.loop("clear", "0", str(self.sums)) as index:
            self.code.store(self.code.constant(0.0), "%scratch", index)

    def start_block(self) -> None:
        """Forget the reviews of the block before."""
        self.code.write(f"store i64 0, ptr {self.kept}")

    def keep(self, values: list[str], weight: str) -> None:
        """Keep the columns of a review, unless it counts nothing in any lane."""
        code = self.code
        filling = [code.constant(0.0)] * (self.columns - len(values))
        kept = code.value(f"load i64, ptr {self.kept}")
        row = code.plus(code.times(kept, self.columns), self.sums)
        code.store_all([*values, *filling], "%scratch", row)
        counts = code.value(f"fcmp ogt {code.real} {weight}, {code.constant(0.0)}")
        reduce = f"@llvm.vector.reduce.or.v{code.lanes}i1"
        some = code.value(f"call i1 {reduce}({code.truth} {counts})")
        more = code.value(f"zext i1 {some} to i64")
        code.write(f"store i64 {code.plus(kept, more)}, ptr {self.kept}")

    def end_block(self) -> None:
        """Add the products of the reviews kept, tile by tile."""
        code, tile = self.code, self.tile
        kept = code.value(f"load i64, ptr {self.kept}")
        number = code.memory(kind="i64")
        code.write(f"store i64 0, ptr {number}")
        part = code.memory(tile * tile)
        with code.loop("down", "0", str(self.across)) as down:
            upto = code.plus(down, 1)
            with code.loop("across", "0", upto) as across:
                code.clear(part, tile * tile)
                with code.loop("kept", "0", kept) as row:
                    self._add_products(part, row, down, across)
                first = code.value(f"load i64, ptr {number}")
                for index in range(tile * tile):
                    total = code.plus(first, index)
                    code.accumulate("%scratch", total, code.load(part, index))
                code.write(f"store i64 {code.plus(first, tile * tile)}, ptr {number}")

    def _add_products(self, part: str, row: str, down: str, across: str) -> None:
        code, tile = self.code, self.tile
        start = code.plus(code.times(row, self.columns), self.sums)
        left, right = (self._columns(start, at) for at in (down, across))
        for i in range(tile):
            for j in range(tile):
                code.accumulate(part, i * tile + j, code.multiply(left[i], right[j]))

    def _columns(self, start: str, number: str) -> list[str]:
        """Read the columns of a tile."""
        code = self.code
        first = code.plus(start, code.times(number, self.tile))
        return [code.load("%scratch", code.plus(first, index)) for index in range(self.tile)]

    def write(self, first: int) -> None:
        """Add up the lanes of every product, and write them."""
        code, scalar = self.code, self.writer.scalar
        wide = Totals(code, 0).wide
        with code.loop("write", "0", str(self.sums)) as index:
            total = wide.sum_of_lanes(code.widened(code.load("%scratch", index)))
            scalar.store(total, "%out", code.plus(index, first))
