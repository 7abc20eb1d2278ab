"""Arithmetic of expressions as code for the compiler (LLVM), many cards at a time.

Every value is a vector with one entry per card ("lane"), so that the arithmetic runs on all
lanes at once whatever the compiler thinks of loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from llvmlite import ir

from srs_eval.engine import elementary
from srs_eval.engine.expressions import LEAVES, Expression, needed

Precision = Literal["float32", "float64"]

# Reordering sums would cost reproducibility; these flags allow fused multiply-add, exact
# reciprocals and forgetting the sign of zero, no more.
_FAST = ("nsz", "arcp", "contract")
_COMPARE = {"less": "<", "at_most": "<=", "equal": "=="}

POINTER, WHOLE = ir.PointerType(), ir.IntType(64)
DOUBLE = ir.DoubleType()


class Writer:
    """Writes operations on vectors of `lanes` numbers, or on plain numbers, into a function."""

    def __init__(self, builder: Any, precision: Precision, lanes: int, *, saturating: bool) -> None:
        self.builder = builder  # of the function; several writers may share one
        self.precision, self.lanes = precision, lanes
        self.saturating = saturating  # whether `log` stays finite at 0 and below
        self.type = self.vector(ir.FloatType() if precision == "float32" else DOUBLE)

    def vector(self, entry: Any) -> Any:
        """Type of a vector with entries of a type."""
        return entry if self.lanes == 1 else ir.VectorType(entry, self.lanes)

    def constant(self, value: float) -> Any:
        """Return a vector that is `value` in every lane."""
        return ir.Constant(self.type, value)

    def memory(self, entries: int = 1, entry: Any = None) -> Any:
        """Set aside memory for `entries` vectors; return a pointer to it."""
        with self.builder.goto_entry_block():
            pointer = self.builder.alloca(entry or self.type, entries)
        pointer.align = _alignment(entry or self.type)
        return pointer

    def load(self, pointer: Any, index: Any = 0, entry: Any = None) -> Any:
        """Read entry `index` (in vectors) after `pointer`."""
        place, entry = self.at(pointer, index, entry), entry or self.type
        return self.builder.load(place, align=_alignment(entry), typ=entry)

    def store(self, value: Any, pointer: Any, index: Any = 0) -> None:
        """Write entry `index` (in vectors) after `pointer`."""
        self.builder.store(value, self.at(pointer, index, value.type), _alignment(value.type))

    def at(self, pointer: Any, index: Any, entry: Any = None) -> Any:
        """Return the address of entry `index` after `pointer`."""
        return self.builder.gep(pointer, [_whole(index)], source_etype=entry or self.type)

    def plus(self, index: Any, offset: Any) -> Any:
        """Add to an index."""
        return self.builder.add(index, _whole(offset))

    def times(self, index: Any, factor: int) -> Any:
        """Multiply an index."""
        return self.builder.mul(index, _whole(factor))

    @contextmanager
    def loop(self, start: int, stop: Any) -> Iterator[Any]:
        """Repeat what is written inside for whole numbers from `start` to below `stop`."""
        builder, before = self.builder, self.builder.block
        head, body, after = (builder.append_basic_block(name) for name in ("head", "body", "after"))
        builder.branch(head)
        builder.position_at_end(head)
        index = builder.phi(WHOLE)
        index.add_incoming(_whole(start), before)
        builder.cbranch(builder.icmp_signed("<", index, _whole(stop)), body, after)
        builder.position_at_end(body)
        yield index
        index.add_incoming(builder.add(index, WHOLE(1), flags=["nsw"]), builder.block)
        builder.branch(head)
        builder.position_at_end(after)

    def add(self, a: Any, b: Any) -> Any:
        """Add two vectors."""
        return self.builder.fadd(a, b, flags=_FAST)

    def multiply(self, a: Any, b: Any) -> Any:
        """Multiply two vectors."""
        return self.builder.fmul(a, b, flags=_FAST)

    def accumulate(self, pointer: Any, index: Any, value: Any) -> None:
        """Add to what stands in memory."""
        self.store(self.add(self.load(pointer, index), value), pointer, index)

    def load_all(self, expressions: Iterable[Expression], pointer: Any) -> dict[int, Any]:
        """Read the values of expressions that lie one after the other."""
        return {e.number: self.load(pointer, index) for index, e in enumerate(expressions)}

    def store_all(self, values: Sequence[Any], pointer: Any) -> None:
        """Write values one after the other."""
        for index, value in enumerate(values):
            self.store(value, pointer, index)

    def spread(self, number: Any) -> Any:
        """Copy a plain number of double precision to all lanes."""
        anything = ir.Constant(self.type, ir.Undefined)
        first = self.builder.insert_element(anything, self.narrowed(number), ir.IntType(32)(0))
        places = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), 0)
        return self.builder.shuffle_vector(first, anything, places)

    def narrowed(self, number: Any) -> Any:
        """Convert a plain number of double precision."""
        if self.precision == "float64":
            return number
        return self.builder.fptrunc(number, ir.FloatType())

    def widened(self, vector: Any) -> Any:
        """Convert a vector to double precision."""
        if self.precision == "float64":
            return vector
        return self.builder.fpext(vector, self.vector(DOUBLE))

    def sum_of_lanes(self, vector: Any) -> Any:
        """Add up the lanes of a vector of doubles: its halves, their halves, and so on."""
        name = f"llvm.vector.reduce.fadd.v{self.lanes}f64"
        return self._intrinsic(name, DOUBLE, DOUBLE(-0.0), vector)

    def any_lane(self, condition: Any) -> Any:
        """Return whether a condition is true in some lane."""
        return self._intrinsic(f"llvm.vector.reduce.or.v{self.lanes}i1", ir.IntType(1), condition)

    def _intrinsic(self, name: str, kind: Any, *operands: Any) -> Any:
        """Call a function of the compiler with a result of a type."""
        of_type = ir.FunctionType(kind, [operand.type for operand in operands])
        function = self.builder.module.declare_intrinsic(name, fnty=of_type)
        # Only what adds up lanes is free to do so in any order.
        flags = ["reassoc"] if "reduce.fadd" in name else []
        return self.builder.call(function, operands, fastmath=flags)

    def compute(
        self, outputs: Iterable[Expression], registers: Mapping[int, Any]
    ) -> dict[int, Any]:
        """Write what computes `outputs`; return everything that is known afterwards.

        `registers` has what need not be computed, by the number of the expression.
        """
        outputs, values = list(outputs), dict(registers)
        for expression in needed(outputs, values):
            operands = [values[operand.number] for operand in expression.operands]
            values[expression.number] = self._compute(expression, operands)
        return values

    def _compute(self, expression: Expression, operands: list[Any]) -> Any:
        builder = self.builder
        match expression.operation:
            case "number":
                return self.constant(float(expression.value))
            case "add":
                return self.add(*operands)
            case "subtract":
                return builder.fsub(*operands, flags=_FAST)
            case "multiply":
                return self.multiply(*operands)
            case "divide":
                return builder.fdiv(*operands, flags=_FAST)
            case "negate":
                return builder.fneg(*operands)
            case "less" | "at_most" | "equal" as operation:
                return builder.fcmp_ordered(_COMPARE[operation], *operands)
            case "minimum" | "maximum" as operation:
                # NaN is passed on from the first operand, as by the machine's own instruction.
                first, second = operands
                order = "<" if operation == "minimum" else ">"
                return builder.select(builder.fcmp_ordered(order, second, first), second, first)
            case "select":
                return builder.select(*operands)
            case "exp" | "log" as operation:
                return builder.call(self._function(operation), operands)
            case "sqrt" | "rint" as operation:
                bits = "f32" if self.precision == "float32" else "f64"
                kind = bits if self.lanes == 1 else f"v{self.lanes}{bits}"
                return self._intrinsic(f"llvm.{operation}.{kind}", self.type, *operands)
        assert expression.operation in LEAVES
        raise ValueError(f"nothing gives {expression.operation} {expression.value}")

    def _function(self, name: Literal["exp", "log"]) -> Any:
        """Return a function of `elementary`, written when it is first called."""
        title, module = f"{name}.{self.lanes}", self.builder.module
        if title not in module.globals:
            function = ir.Function(module, ir.FunctionType(self.type, [self.type]), title)
            function.linkage = "internal"
            function.attributes.add("alwaysinline")
            body = ir.IRBuilder(function.append_basic_block())
            inner = Writer(body, self.precision, self.lanes, saturating=self.saturating)
            body.ret(getattr(elementary, name)(inner, function.args[0]))
        return module.globals[title]


def _whole(index: Any) -> Any:
    return WHOLE(index) if isinstance(index, int) else index


def _alignment(entry: Any) -> int | None:
    """Bytes that an entry of a type is aligned to; by default its own size."""
    return 64 if isinstance(entry, ir.VectorType) else None
