"""Functions over all cards of a log: predictions, the loss with its gradient, and Fisher's matrix.

Cards are packed into blocks of `LANES` (see `packing.py`); the reviews of a block are walked in
order, all lanes at once. Quantities of the parameters alone are computed once per call, in double
precision, and so is their part of the chain rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from llvmlite import ir

from srs_eval.data.reviews import FloatArray
from srs_eval.engine.expressions import Expression, fixed_inputs, needed
from srs_eval.engine.machine import compiled_function
from srs_eval.engine.packing import FACTS, LANES, Packed, aligned
from srs_eval.engine.tracing import LARGEST_P, SMALLEST_P, Traced, adjoints
from srs_eval.engine.writer import POINTER, WHOLE, Precision, Writer

# Worth keeping for a walk back; everything else is cheaper computed again.
_COSTLY = frozenset({"exp", "log", "divide", "sqrt"})
_TILE = 3  # the fastest of 2, 3 and 4, by a little, on a processor with AVX-512


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel ready to be called."""

    function: Callable[..., None]
    precision: Precision  # Of the reviews and of the arithmetic on them
    outputs: int  # Vectors per place (of `walk_kernel`) or numbers (of the others) it writes
    scratch: int = 0  # Vectors of scratch memory it needs per review of the longest card, and
    more_scratch: int = 0  # how many on top of that
    quantities: int = 0  # Of `fisher_kernel`: quantities of the parameters that p depends on

    def __call__(self, w: FloatArray, packed: Packed, out: FloatArray | None = None) -> FloatArray:
        """Run the kernel on reviews in its own precision; return what it has written."""
        assert packed.precision == self.precision
        w = np.ascontiguousarray(w, np.float64)
        vectors = packed.longest * self.scratch + self.more_scratch
        scratch = aligned(vectors * LANES, self.precision)
        out = np.zeros(self.outputs) if out is None else out
        self.function(w.ctypes.data, *packed.addresses, scratch.ctypes.data, out.ctypes.data)
        return out


class Frame:
    """The code of a kernel that computes `outputs` for a review, to be filled in.

    What they need of the parameters alone is computed now, and so are the derivatives of
    `quantities` by the parameters.
    """

    def __init__(
        self,
        traced: Traced,
        outputs: Iterable[Expression],
        precision: Precision,
        quantities: Sequence[Expression] = (),
        *,
        saturating: bool = True,
    ) -> None:
        self.traced, self.precision = traced, precision
        kinds = [POINTER, POINTER, WHOLE, *[POINTER] * 4]
        kernel = ir.Function(ir.Module(), ir.FunctionType(ir.VoidType(), kinds), "kernel")
        # Vectors that do not fit into registers wait on the stack, where the widest are aligned.
        kernel.attributes.alignstack = 64
        for argument in kernel.args:
            if argument.type == POINTER:
                argument.attributes.add("noalias")
        w, self.reviews, self.blocks, *self.extent, self.scratch, self.out = kernel.args
        builder = ir.IRBuilder(kernel.append_basic_block())
        self.code = Writer(builder, precision, LANES, saturating=saturating)
        self.wide = Writer(builder, "float64", LANES, saturating=saturating)
        self.scalar = Writer(builder, "float64", 1, saturating=False)
        fixed, one = fixed_inputs(outputs), traced.graph.constant(1.0)
        by = [adjoints(traced.graph, [(each, one)], kind="parameter") for each in quantities]
        chain = [
            {index: each[w.number] for index, w in enumerate(traced.parameters) if w.number in each}
            for each in by
        ]
        slopes = [slope for derivatives in chain for slope in derivatives.values()]
        parameters = self.scalar.load_all(traced.parameters, w)
        numbers = self.scalar.compute([*fixed, *slopes], parameters)
        # derivatives of each of the quantities, by index of the parameter
        self.slopes = [
            {parameter: numbers[slope.number] for parameter, slope in derivatives.items()}
            for derivatives in chain
        ]
        # vectors of the quantities of the parameters alone, by number of the expression
        self.registers = {e.number: self.code.spread(numbers[e.number]) for e in fixed}
        self.state = self.code.memory(len(traced.states))

    @contextmanager
    def block(self) -> Iterator[tuple[ir.Value, ir.Value, dict[int, ir.Value]]]:
        """Repeat for all blocks: compute and keep the states after their first reviews.

        Yield the first place of each block, how many it has, and what is known there.
        """
        with self.code.loop(0, self.blocks) as block:
            start, length = (self.code.load(each, block, WHOLE) for each in self.extent)
            values = self.compute(self.traced.init, start, {})
            self.code.store_all([values[e.number] for e in self.traced.init], self.state)
            yield start, length, values

    @contextmanager
    def walk(
        self, start: ir.Value, length: ir.Value, outputs: Iterable[Expression]
    ) -> Iterator[tuple[ir.Value, ir.Value, dict[int, ir.Value]]]:
        """Repeat for the further reviews of a block: compute outputs, and keep the next states.

        Yield the number and the place of each, and what is known there.
        """
        with self.code.loop(1, length) as nth:
            place = self.code.plus(start, nth)
            states = self.code.load_all(self.traced.states, self.state)
            values = self.compute((*outputs, *self.traced.step), place, states)
            yield nth, place, values
            self.code.store_all([values[e.number] for e in self.traced.step], self.state)

    def compute(
        self, outputs: Iterable[Expression], place: ir.Value, values: Mapping[int, ir.Value]
    ) -> dict[int, ir.Value]:
        """Compute for the reviews at a place, from their facts and other values."""
        reviews = self.code.at(self.reviews, self.code.times(place, FACTS))
        facts = self.code.load_all(self.traced.facts, reviews)
        return self.code.compute(outputs, {**self.registers, **facts, **values})

    def totals(self, count: int) -> ir.Value:
        """Set aside memory for sums over blocks, in double precision per lane."""
        memory = self.wide.memory(count)
        self.wide.store_all([self.wide.constant(0.0)] * count, memory)
        return memory

    def add(self, sums: ir.Value, totals: ir.Value, count: int) -> None:
        """Add the sums of a block to those over blocks."""
        for index in range(count):
            self.wide.accumulate(totals, index, self.code.widened(self.code.load(sums, index)))

    def numbers(self, totals: ir.Value, count: int) -> list[ir.Value]:
        """Add up the lanes."""
        return [self.wide.sum_of_lanes(self.wide.load(totals, index)) for index in range(count)]

    def finish(self, *sizes: int) -> Kernel:
        """Compile the kernel; see `Kernel` for the sizes."""
        self.code.builder.ret_void()
        return Kernel(compiled_function(self.code.builder.function), self.precision, *sizes)


def walk_kernel(traced: Traced, precision: Precision) -> Kernel:
    """Write the kernel whose vectors per place are p and the state after the review.

    p of a first review is NaN.
    """
    after = (traced.p, *traced.step)
    frame = Frame(traced, (*after, *traced.init), precision, saturating=False)
    code, width = frame.code, len(after)
    with frame.block() as (start, length, values):
        first = [code.constant(math.nan), *(values[e.number] for e in traced.init)]
        code.store_all(first, code.at(frame.out, code.times(start, width)))
        with frame.walk(start, length, after) as (_, place, values):
            further = [values[e.number] for e in after]
            code.store_all(further, code.at(frame.out, code.times(place, width)))
    return frame.finish(width)


class GradientFormulas:
    """What is computed on the way forwards and on the way back (reverse mode)."""

    def __init__(self, traced: Traced) -> None:
        graph = traced.graph
        # derivatives of the loss of all later reviews by the state after this one
        self.after = tuple(graph.leaf("adjoint", index) for index in range(len(traced.states)))
        seeds = [(traced.p, traced.loss_slope), *zip(traced.step, self.after, strict=True)]
        by_step = adjoints(graph, seeds, kind="varying")
        by_init = adjoints(graph, list(zip(traced.init, self.after, strict=True)), kind="varying")
        numbers = sorted(by_step.keys() | by_init.keys())
        # quantities of the parameters alone, and the derivatives by these of which the loss at a
        # further and at a first review is made
        self.fixed = [graph.nodes[n] for n in numbers if graph.nodes[n].kind == "parameter"]
        self.step = {i: by_step[e.number] for i, e in enumerate(self.fixed) if e.number in by_step}
        self.init = {i: by_init[e.number] for i, e in enumerate(self.fixed) if e.number in by_init}
        zero = graph.constant(0.0)
        self.before = tuple(by_step.get(state.number, zero) for state in traced.states)
        self.forward = (traced.loss, *traced.step)
        self.backward = (*self.step.values(), *self.before)
        # states and costly results, which the way forwards leaves for the way back
        again = {expression.number for expression in needed(self.backward)}
        costly = [
            expression
            for expression in needed(self.forward)
            if expression.operation in _COSTLY
            and expression.kind == "varying"
            and expression.number in again
        ]
        self.trail = (*traced.states, *costly)


def gradient_kernel(traced: Traced, precision: Precision) -> Kernel:
    """Write the kernel whose numbers are the loss, then its derivatives by the parameters."""
    formulas = GradientFormulas(traced)
    outputs = (*formulas.forward, *formulas.backward, *formulas.init.values(), *traced.init)
    frame = Frame(traced, outputs, precision, formulas.fixed)
    code, count, width = frame.code, 1 + len(formulas.fixed), len(formulas.trail)
    totals, sums = frame.totals(count), code.memory(count)
    with frame.block() as (start, length, _):
        code.store_all([code.constant(0.0)] * count, sums)
        with frame.walk(start, length, (traced.loss,)) as (nth, _, values):
            trail = code.at(frame.scratch, code.times(nth, width))
            code.store_all([values[e.number] for e in formulas.trail], trail)
            code.accumulate(sums, 0, values[traced.loss.number])
        _walk_back(frame, formulas, start, length, sums)
        frame.add(sums, totals, count)
    loss, *numbers = frame.numbers(totals, count)
    scalar = frame.scalar
    scalar.store(loss, frame.out)
    for parameter in range(len(traced.parameters)):
        total = scalar.constant(0.0)
        for number, slopes in zip(numbers, frame.slopes, strict=True):
            if parameter in slopes:
                total = scalar.add(total, scalar.multiply(number, slopes[parameter]))
        scalar.store(total, frame.out, parameter + 1)
    return frame.finish(1 + len(traced.parameters), width)


def _walk_back(
    frame: Frame, formulas: GradientFormulas, start: ir.Value, length: ir.Value, sums: ir.Value
) -> None:
    """Add the derivatives of a block to `sums`."""
    code, states = frame.code, len(formulas.after)
    slope = code.memory(states)  # the derivatives by the state
    code.store_all([code.constant(0.0)] * states, slope)
    last = code.plus(length, -1)
    with code.loop(0, last) as steps:
        nth = code.builder.sub(last, steps)
        trail = code.at(frame.scratch, code.times(nth, len(formulas.trail)))
        values = code.load_all(formulas.after, slope) | code.load_all(formulas.trail, trail)
        values = frame.compute(formulas.backward, code.plus(start, nth), values)
        for index, derivative in formulas.step.items():
            code.accumulate(sums, 1 + index, values[derivative.number])
        code.store_all([values[e.number] for e in formulas.before], slope)
    after = code.load_all(formulas.after, slope)
    values = frame.compute(formulas.init.values(), start, after)
    for index, derivative in formulas.init.items():
        code.accumulate(sums, 1 + index, values[derivative.number])


class _Sensitivities:
    """The derivatives of the state are carried along beside it (forward mode)."""

    def __init__(self, traced: Traced) -> None:
        graph = traced.graph
        one, zero = graph.constant(1.0), graph.constant(0.0)
        p = graph.clip(traced.p, SMALLEST_P, LARGEST_P)
        by_p = adjoints(graph, [(p, one)], kind="varying")
        by_step = [adjoints(graph, [(e, one)], kind="varying") for e in traced.step]
        by_init = [adjoints(graph, [(e, one)], kind="varying") for e in traced.init]
        states = {state.number: index for index, state in enumerate(traced.states)}

        def fixed(derivatives: Iterable[int]) -> set[int]:
            return {number for number in derivatives if graph.nodes[number].kind == "parameter"}

        # (state, quantity of the parameters alone that it depends on, at once or by other states)
        pairs = {
            (i, n) for by in (by_init, by_step) for i, each in enumerate(by) for n in fixed(each)
        }
        for _ in states:
            for i, each in enumerate(by_step):
                before = {states[number] for number in each if number in states}
                pairs |= {(i, n) for j, n in pairs if j in before}
        # the quantities that p depends on
        numbers = fixed(by_p) | {n for i, n in pairs if traced.states[i].number in by_p}
        self.fixed = [graph.nodes[number] for number in sorted(numbers)]
        ordered = sorted((n, i) for i, n in pairs if n in numbers)
        carried = {(i, n): graph.leaf("sensitivity", k) for k, (n, i) in enumerate(ordered)}

        def total(derivatives: dict[int, Expression], quantity: int) -> Expression:
            result = derivatives.get(quantity, zero)
            for number, index in states.items():
                if number in derivatives and (index, quantity) in carried:
                    result = result + derivatives[number] * carried[index, quantity]
            return result

        # the model with these beside the state
        self.traced = replace(
            traced,
            states=(*traced.states, *carried.values()),
            init=(*traced.init, *(by_init[i].get(quantity, zero) for i, quantity in carried)),
            step=(*traced.step, *(total(by_step[i], quantity) for i, quantity in carried)),
        )
        scale = (traced.weight / (p * (1.0 - p))) ** 0.5
        residual = graph.where(traced.rating > 1.5, p - 1.0, p)
        # J = dp / sqrt(p q) for each quantity, and the residual r = (p - y) / sqrt(p q), both times
        # the root of the weight: J'J is the Fisher information, and J'r the gradient
        self.columns = [scale * total(by_p, e.number) for e in self.fixed] + [scale * residual]


def fisher_kernel(traced: Traced, precision: Precision) -> Kernel:
    """Write the kernel for a Newton step.

    Its numbers are the loss, then the derivatives of the quantities by the parameters [quantities,
    parameters], of which zeros are not written, then the products [width, width] of J of each
    quantity, the residual and what fills the last tile.
    """
    forward = _Sensitivities(traced)
    traced, outputs = forward.traced, (traced.loss, *forward.columns, traced.weight)
    everything = (*outputs, *traced.step, *traced.init)
    frame = Frame(traced, everything, precision, forward.fixed)
    code, scalar, builder = frame.code, frame.scalar, frame.code.builder
    zero, width = code.constant(0.0), -(-len(forward.columns) // _TILE) * _TILE
    filling, size = [zero] * (width - len(forward.columns)), width * width
    totals, loss, rows = frame.totals(1), code.memory(), code.memory(entry=WHOLE)
    products, columns = frame.scratch, code.at(frame.scratch, size)
    with code.loop(0, size) as index:
        code.store(zero, products, index)
    with frame.block() as (start, length, _):
        code.store(zero, loss)
        code.store(WHOLE(0), rows)
        with frame.walk(start, length, outputs) as (_, _, values):
            code.accumulate(loss, 0, values[traced.loss.number])
            row = code.load(rows, 0, WHOLE)
            vectors = [*(values[e.number] for e in forward.columns), *filling]
            code.store_all(vectors, code.at(columns, code.times(row, width)))
            # The next review takes the place of one that counts nothing in any lane.
            counts = code.any_lane(builder.fcmp_ordered(">", values[traced.weight.number], zero))
            code.store(code.plus(row, builder.zext(counts, WHOLE)), rows)
        _add_products(code, products, columns, code.load(rows, 0, WHOLE), width)
        frame.add(loss, totals, 1)
    scalar.store(frame.numbers(totals, 1)[0], frame.out)
    count = len(traced.parameters)
    for index, slopes in enumerate(frame.slopes):
        for parameter, slope in slopes.items():
            scalar.store(slope, frame.out, 1 + index * count + parameter)
    first = 1 + len(forward.fixed) * count
    out = scalar.at(frame.out, first)
    with code.loop(0, width) as i, code.loop(0, code.plus(i, 1)) as j:
        low, high = (code.plus(code.times(a, width), b) for a, b in ((i, j), (j, i)))
        total = frame.wide.sum_of_lanes(code.widened(code.load(products, low)))
        scalar.store(total, out, low)
        scalar.store(total, out, high)
    return frame.finish(first + size, width, size, len(forward.fixed))


def _add_products(
    code: Writer, sums: ir.Value, columns: ir.Value, rows: ir.Value, width: int
) -> None:
    """Add the products of all pairs of `columns` [rows, width] to `sums` [width, width].

    Tile by tile, so that sums stay in registers, and no further than to the diagonal.
    """
    tile, part = range(_TILE), code.memory(_TILE * _TILE)
    with code.loop(0, width // _TILE) as down, code.loop(0, code.plus(down, 1)) as across:
        left, right = code.times(down, _TILE), code.times(across, _TILE)
        code.store_all([code.constant(0.0)] * len(tile) ** 2, part)
        with code.loop(0, rows) as row:
            vectors = code.at(columns, code.times(row, width))
            a, b = ([code.load(vectors, code.plus(at, i)) for i in tile] for at in (left, right))
            for i, j in product(tile, tile):
                code.accumulate(part, i * _TILE + j, code.multiply(a[i], b[j]))
        for i, j in product(tile, tile):
            place = code.plus(code.times(code.plus(left, i), width), code.plus(right, j))
            code.accumulate(sums, place, code.load(part, i * _TILE + j))
