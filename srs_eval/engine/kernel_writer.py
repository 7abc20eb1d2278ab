"""What all kernels share: their frame, their inputs, their sums; and the simplest of them.

A kernel is a function over all cards of a log. Cards are packed into blocks of `LANES` (see
`layout.py`); the reviews of a block are walked in order, all lanes at once.

Quantities of the parameters alone are computed once per call, in double precision, and so is
their part of the chain rule.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from srs_eval.engine.assembly import Assembly, Precision
from srs_eval.engine.elementary import exp_function, log_function
from srs_eval.engine.expressions import Expression, fixed_inputs
from srs_eval.engine.layout import FACTS, LANES
from srs_eval.engine.tracing import Traced

_SIGNATURE = (
    "ptr noalias readonly %w, ptr noalias readonly %reviews, i64 %blocks, "
    "ptr noalias readonly %starts, ptr noalias readonly %lengths, "
    "ptr noalias %scratch, ptr noalias %out"
)
_INTRINSICS = ("sqrt", "rint")
# Vectors that do not fit into registers wait on the stack, where the widest must be aligned.
_ATTRIBUTES = 'alignstack(64) "prefer-vector-width"="512" "min-legal-vector-width"="512"'

# Derivatives of quantities of the parameters alone, by index of the parameter.
Chain = Sequence[Mapping[int, Expression]]


@dataclass(frozen=True, slots=True)
class KernelCode:
    """A kernel in the compiler's language."""

    text: str  # The whole module; its function is called ``kernel``
    precision: Precision  # {"float", "double"}: Of the reviews and of the arithmetic on them
    outputs: int  # Vectors per place (of ``walk``) or numbers (of the others) it writes
    scratch: int = 0  # Vectors of scratch memory it needs per review of the longest card, and
    more_scratch: int = 0  # how many on top of that


class KernelWriter:
    """Writes a kernel that computes `outputs` for a review.

    What they need of the parameters alone is computed now, and so are the derivatives `chain` by
    the parameters, see `slopes`.
    """

    def __init__(
        self, traced: Traced, outputs: Sequence[Expression], precision: Precision, chain: Chain = ()
    ) -> None:
        self.traced = traced
        self.code = Assembly(LANES, precision)
        self.scalar = Assembly(1, "double", self.code.body)
        parameters = {
            expression.number: self.scalar.load("%w", index)
            for index, expression in enumerate(traced.parameters)
        }
        fixed = fixed_inputs(outputs)
        wanted = [slope for derivatives in chain for slope in derivatives.values()]
        found = self.scalar.compute([*fixed, *wanted], parameters)
        # plain numbers of `chain`, by index of the parameter
        self.slopes = [
            {parameter: found[slope.number] for parameter, slope in derivatives.items()}
            for derivatives in chain
        ]
        # vectors of the quantities of the parameters alone, by number of the expression
        self.names: dict[int, str] = {}
        for expression in fixed:
            number = found[expression.number]
            if precision == "float":
                number = self.code.value(f"fptrunc double {number} to float")
            self.names[expression.number] = self.code.spread(number)

    @contextmanager
    def block(self) -> Iterator[tuple[str, str]]:
        """Repeat for all blocks; yield the first place of each and how many it has."""
        with self.code.loop("block", "0", "%blocks") as block:
            start = self.code.load("%starts", block, kind="i64")
            length = self.code.load("%lengths", block, kind="i64")
            yield start, length

    def compute(
        self, outputs: Sequence[Expression], place: str, known: Mapping[int, str]
    ) -> dict[int, str]:
        """Compute for the reviews at a place, given what is known beside their facts."""
        first = self.code.times(place, FACTS)
        facts = {
            fact.number: self.code.load("%reviews", self.code.plus(first, index))
            for index, fact in enumerate(self.traced.facts)
        }
        return self.code.compute(outputs, {**self.names, **facts, **known})

    def begin(self, start: str, state: str) -> list[str]:
        """Store the states after the first reviews of a block, and return them."""
        found = self.compute(self.traced.init, start, {})
        after = [found[expression.number] for expression in self.traced.init]
        self.code.store_all(after, state)
        return after

    @contextmanager
    def walk(
        self, start: str, length: str, state: str, outputs: Sequence[Expression]
    ) -> Iterator[tuple[str, str, dict[int, str]]]:
        """Repeat for the further reviews of a block, from the states that `begin` stored.

        Yield the number and the place of each, and the names of what was computed there.
        """
        step = self.traced.step
        with self.code.loop("review", "1", length) as nth:
            place = self.code.plus(start, nth)
            known = self.code.load_all(self.traced.states, state)
            found = self.compute((*outputs, *step), place, known)
            yield nth, place, found
            self.code.store_all([found[expression.number] for expression in step], state)

    def finish(self, *, saturating: bool) -> str:
        """Return the whole module; see `log_function` for `saturating`."""
        code = self.code
        wide = f"v{code.lanes}f64(double, <{code.lanes} x double>)"
        parts = [
            exp_function(code.lanes, code.precision),
            log_function(code.lanes, code.precision, saturating=saturating),
            exp_function(1, "double"),
            log_function(1, "double", saturating=False),
            f"declare i1 @llvm.vector.reduce.or.v{code.lanes}i1({code.truth})\n",
            f"declare double @llvm.vector.reduce.fadd.{wide}\n",
        ]
        for writer in (code, self.scalar):
            parts += [
                f"declare {writer.real} @{writer.intrinsic_name(name)}({writer.real})\n"
                for name in _INTRINSICS
            ]
        body = code.body.text()
        parts.append(
            f"define void @kernel({_SIGNATURE}) {_ATTRIBUTES} {{\n{body}\n  ret void\n}}\n"
        )
        return "\n".join(parts)


class Totals:
    """Sums over blocks in double precision, one per quantity and lane."""

    def __init__(self, code: Assembly, count: int) -> None:
        self.code = code
        self.wide = Assembly(code.lanes, "double", code.body)
        self.count = count
        self.memory = self.wide.memory(count)
        self.wide.clear(self.memory, count)

    def add(self, sums: str) -> None:
        """Add the sums of one block."""
        for index in range(self.count):
            self.wide.accumulate(self.memory, index, self.code.widened(self.code.load(sums, index)))

    def numbers(self) -> list[str]:
        """Add up the lanes."""
        return [
            self.wide.sum_of_lanes(self.wide.load(self.memory, index))
            for index in range(self.count)
        ]


def walk_kernel(traced: Traced, precision: Precision) -> KernelCode:
    """Write the kernel; its vectors per place are p and the state after the review.

    p of a first review is NaN.
    """
    after = (traced.p, *traced.step)
    writer = KernelWriter(traced, (*after, *traced.init), precision)
    code, width = writer.code, len(after)
    state = code.memory(len(traced.states))
    with writer.block() as (start, length):
        first = writer.begin(start, state)
        code.store_all([code.constant(math.nan), *first], "%out", code.times(start, width))
        with writer.walk(start, length, state, after) as (_, place, found):
            values = [found[expression.number] for expression in after]
            code.store_all(values, "%out", code.times(place, width))
    return KernelCode(writer.finish(saturating=False), precision, outputs=width)
