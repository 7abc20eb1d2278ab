"""The kernel for a Newton step: loss, gradient and Fisher information in one walk.

The derivatives of the state by every quantity of the parameters are carried along (forward
mode); they give those of each prediction. With J = dp / sqrt(p q) and residual
r = (p - y) / sqrt(p q), both times the root of the weight, the gradient is J'r and the Fisher
information J'J: one matrix of products, summed over reviews. The products of a block are
summed at its end, in tiles small enough to stay in the processor's registers.
"""

from __future__ import annotations

from dataclasses import dataclass

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
        # the quantities of parameters alone that p is differentiated by
        self.fixed = [
            graph.nodes[n]
            for n in candidates
            if n in by_p
            or any(
                (index, n) in influenced and state.number in by_p
                for index, state in enumerate(traced.states)
            )
        ]
        pairs = [
            (index, e.number)
            for e in self.fixed
            for index in range(len(traced.states))
            if (index, e.number) in influenced
        ]
        # by state and quantity: derivatives that can differ from zero
        self.carried = {pair: graph.leaf("sensitivity", place) for place, pair in enumerate(pairs)}
        zero = graph.constant(0.0)

        def total(derivatives: dict[int, Expression], quantity: int) -> Expression:
            result = derivatives.get(quantity, zero)
            for index, state in enumerate(traced.states):
                if state.number in derivatives and (index, quantity) in self.carried:
                    result = result + derivatives[state.number] * self.carried[index, quantity]
            return result

        self.step = [total(by_step[index], quantity) for index, quantity in self.carried]
        self.init = [by_init[index].get(quantity, zero) for index, quantity in self.carried]
        scale = graph.make("sqrt", traced.weight / (p * (1.0 - p)))
        residual = m.where(traced.rating > 1.5, p - 1.0, p)
        # J for each quantity, and the residual
        self.columns = [scale * total(by_p, e.number) for e in self.fixed] + [scale * residual]


def _influenced(
    traced: Traced,
    by_step: list[dict[int, Expression]],
    by_init: list[dict[int, Expression]],
    candidates: list[int],
) -> set[tuple[int, int]]:
    """Find the pairs of a state and a quantity that it can depend on."""
    count = len(traced.states)
    found = {
        (index, n)
        for index in range(count)
        for n in candidates
        if n in by_step[index] or n in by_init[index]
    }
    for _ in range(count):  # influence passes from state to state
        found |= {
            (index, n)
            for index in range(count)
            for other, state in enumerate(traced.states)
            if state.number in by_step[index]
            for n in candidates
            if (other, n) in found
        }
    return found


def fisher_kernel(traced: Traced, precision: Precision, *, tile: int) -> FisherCode:
    """Write the kernel."""
    forward = _Forward(traced)
    chain = parameter_derivatives(traced, tuple(forward.fixed))
    further = (traced.loss, *traced.step, *forward.step, *forward.columns)
    writer = KernelWriter(traced, (*further, *traced.init, *forward.init), precision, chain)
    code = writer.code
    columns = -(-len(forward.columns) // tile) * tile
    tiles = (columns // tile) * (columns // tile + 1) // 2
    products = _Products(writer, columns, tile)
    totals = Totals(code, 1)
    loss = code.memory()
    state = code.memory(len(traced.states))
    carried = code.memory(max(1, len(forward.carried)))
    leaves = tuple(forward.carried.values())

    with writer.block() as (start, length):
        code.clear(loss, 1)
        found = writer.compute((*traced.init, *forward.init), start, {})
        code.store_all([found[e.number] for e in traced.init], state)
        code.store_all([found[e.number] for e in forward.init], carried)
        products.start_block()
        with code.loop("review", "1", length) as nth:
            review = code.value(f"add nsw i64 {start}, {nth}")
            known = code.load_all(traced.states, state) | code.load_all(leaves, carried)
            found = writer.compute((*further, traced.weight), review, known)
            code.accumulate(loss, 0, found[traced.loss.number])
            products.keep([found[e.number] for e in forward.columns], found[traced.weight.number])
            code.store_all([found[e.number] for e in traced.step], state)
            code.store_all([found[e.number] for e in forward.step], carried)
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
        row = code.value(f"mul nsw i64 {kept}, {self.columns}")
        code.store_all([*values, *filling], "%scratch", code.plus(row, self.sums))
        counts = code.value(f"fcmp ogt {code.real} {weight}, {code.constant(0.0)}")
        reduce = f"@llvm.vector.reduce.or.v{code.lanes}i1"
        some = code.value(f"call i1 {reduce}({code.truth} {counts})")
        more = code.value(f"zext i1 {some} to i64")
        code.write(f"store i64 {code.value(f'add nsw i64 {kept}, {more}')}, ptr {self.kept}")

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
        start = code.plus(code.value(f"mul nsw i64 {row}, {self.columns}"), self.sums)
        left, right = (self._columns(start, at) for at in (down, across))
        for i in range(tile):
            for j in range(tile):
                code.accumulate(part, i * tile + j, code.multiply(left[i], right[j]))

    def _columns(self, start: str, number: str) -> list[str]:
        """Read the columns of a tile."""
        code = self.code
        offset = code.value(f"mul nsw i64 {number}, {self.tile}")
        first = code.value(f"add nsw i64 {start}, {offset}")
        return [code.load("%scratch", code.plus(first, index)) for index in range(self.tile)]

    def write(self, first: int) -> None:
        """Add up the lanes of every product, and write them."""
        code, scalar = self.code, self.writer.scalar
        wide = Totals(code, 0).wide
        with code.loop("write", "0", str(self.sums)) as index:
            total = wide.sum_of_lanes(code.widened(code.load("%scratch", index)))
            scalar.store(total, "%out", code.plus(index, first))
