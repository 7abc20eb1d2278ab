"""Machine-independent code (LLVM's language) for expressions, many cards at a time.

Every value is a vector with one entry per card ("lane"), so that the arithmetic runs on all
lanes at once whatever the compiler thinks of loops.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from srs_eval.engine.expressions import LEAVES, Expression, needed

Precision = Literal["float", "double"]

# Reordering sums would cost reproducibility; these flags allow fused multiply-add, exact
# reciprocals and forgetting the sign of zero, no more.
_FAST = "nsz arcp contract"

_BYTES = {"double": 8, "i64": 8, "float": 4, "i8": 1}
_BINARY = {"add": "fadd", "subtract": "fsub", "multiply": "fmul", "divide": "fdiv"}
_COMPARE = {"less": "olt", "at_most": "ole", "equal": "oeq"}
_CHOICE = {"minimum": "olt", "maximum": "ogt"}


@dataclass(slots=True)
class Body:
    """Lines of a function."""

    allocations: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    count: int = 0

    def text(self) -> str:
        """Everything written, with the memory that is asked for at the start."""
        return "\n".join([*self.allocations, *self.lines])


@dataclass(frozen=True, slots=True)
class Assembly:
    """Writes operations on vectors into the body of a function."""

    lanes: int  # Entries of a vector; 1 for plain numbers
    precision: Precision  # {"float", "double"}: Of every entry
    body: Body = field(default_factory=Body)  # Where the lines go; several writers may share one

    @property
    def real(self) -> str:
        """Type of a vector of numbers."""
        return self.precision if self.lanes == 1 else f"<{self.lanes} x {self.precision}>"

    @property
    def truth(self) -> str:
        """Type of a vector of conditions."""
        return "i1" if self.lanes == 1 else f"<{self.lanes} x i1>"

    def write(self, line: str) -> None:
        """Write a line that has no value."""
        self.body.lines.append("  " + line)

    def label(self, name: str) -> None:
        """Begin a block that can be jumped to."""
        self.body.lines.append(f"{name}:")

    def value(self, text: str) -> str:
        """Write a line that has a value; return its name."""
        name = self._name()
        self.body.lines.append(f"  {name} = {text}")
        return name

    def memory(self, entries: int = 1, *, kind: str | None = None) -> str:
        """Set aside memory for `entries` vectors; return a pointer to it."""
        kind = kind or self.real
        name = self._name()
        shape = f"[{entries} x {kind}]"
        self.body.allocations.append(f"  {name} = alloca {shape}, align {self.alignment(kind)}")
        return name

    @contextmanager
    def loop(self, name: str, start: str, stop: str) -> Iterator[str]:
        """Repeat what is written inside for whole numbers from `start` to below `stop`."""
        counter = self.memory(kind="i64")
        self.write(f"store i64 {start}, ptr {counter}")
        self.write(f"br label %{name}.head")
        self.label(f"{name}.head")
        index = self.value(f"load i64, ptr {counter}")
        within = self.value(f"icmp slt i64 {index}, {stop}")
        self.write(f"br i1 {within}, label %{name}.body, label %{name}.end")
        self.label(f"{name}.body")
        yield index
        following = self.value(f"add nsw i64 {index}, 1")
        self.write(f"store i64 {following}, ptr {counter}")
        self.write(f"br label %{name}.head")
        self.label(f"{name}.end")

    def number(self, value: float) -> str:
        """Write a number as a scalar; 32-bit ones are spelt as the 64-bit number they equal."""
        if self.precision == "float":
            value = struct.unpack("f", struct.pack("f", value))[0]
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"

    def spread(self, scalar: str) -> str:
        """Copy a scalar to all lanes."""
        if self.lanes == 1:
            return scalar
        one = self.value(f"insertelement {self.real} poison, {self.precision} {scalar}, i32 0")
        mask = f"<{self.lanes} x i32> zeroinitializer"
        return self.value(f"shufflevector {self.real} {one}, {self.real} poison, {mask}")

    def constant(self, value: float) -> str:
        """Return a vector that is `value` in every lane."""
        number = self.number(value)
        if self.lanes == 1:
            return number
        return "<" + ", ".join([f"{self.precision} {number}"] * self.lanes) + ">"

    def load(self, pointer: str, index: str | int, *, kind: str | None = None) -> str:
        """Read entry `index` (in vectors) after `pointer`."""
        kind = kind or self.real
        place = self.value(f"getelementptr {kind}, ptr {pointer}, i64 {index}")
        return self.value(f"load {kind}, ptr {place}, align {self.alignment(kind)}")

    def store(self, value: str, pointer: str, index: str | int, *, kind: str | None = None) -> None:
        """Write entry `index` (in vectors) after `pointer`."""
        kind = kind or self.real
        place = self.value(f"getelementptr {kind}, ptr {pointer}, i64 {index}")
        self.write(f"store {kind} {value}, ptr {place}, align {self.alignment(kind)}")

    def alignment(self, kind: str) -> int:
        """Bytes an entry of a type is aligned to."""
        return 64 if kind.startswith("<") else _BYTES[kind]

    def add(self, a: str, b: str) -> str:
        """Add two vectors."""
        return self.value(f"fadd {_FAST} {self.real} {a}, {b}")

    def multiply(self, a: str, b: str) -> str:
        """Multiply two vectors."""
        return self.value(f"fmul {_FAST} {self.real} {a}, {b}")

    def plus(self, index: str, offset: int | str) -> str:
        """Add to an index."""
        return self.value(f"add nsw i64 {index}, {offset}") if offset else index

    def times(self, index: str, factor: int) -> str:
        """Multiply an index."""
        return self.value(f"mul nsw i64 {index}, {factor}")

    def accumulate(self, memory: str, index: str | int, value: str) -> None:
        """Add to what stands in memory."""
        self.store(self.add(self.load(memory, index), value), memory, index)

    def load_all(self, expressions: Iterable[Expression], memory: str) -> dict[int, str]:
        """Read the values of expressions that lie one after the other."""
        return {e.number: self.load(memory, index) for index, e in enumerate(expressions)}

    def store_all(self, values: Sequence[str], memory: str, first: str = "0") -> None:
        """Write values one after the other, from entry `first` on."""
        for index, value in enumerate(values):
            self.store(value, memory, self.plus(first, index))

    def clear(self, memory: str, count: int) -> None:
        """Write zeros."""
        self.store_all([self.constant(0.0)] * count, memory)

    def widened(self, vector: str) -> str:
        """Convert a vector to double precision."""
        if self.precision == "double":
            return vector
        return self.value(f"fpext {self.real} {vector} to <{self.lanes} x double>")

    def sum_of_lanes(self, vector: str) -> str:
        """Add up the lanes of a vector of doubles: its halves, their halves, and so on."""
        reduce = f"@llvm.vector.reduce.fadd.v{self.lanes}f64"
        return self.value(f"call reassoc double {reduce}(double -0.0, {self.real} {vector})")

    def compute(self, outputs: Iterable[Expression], known: Mapping[int, str]) -> dict[int, str]:
        """Write what computes `outputs`, and return names of everything that is known afterwards.

        `known` has the names of what need not be computed, by the number of the expression.
        """
        outputs = list(outputs)
        names = dict(known)
        for expression in needed(outputs, names):
            names[expression.number] = self._compute(expression, names)
        return names

    def _compute(self, expression: Expression, names: Mapping[int, str]) -> str:
        operation = expression.operation
        if operation == "number":
            return self.constant(float(expression.value))
        if operation in LEAVES:
            raise ValueError(f"nothing gives {operation} {expression.value}")
        given = [names[operand.number] for operand in expression.operands]
        if operation in _BINARY:
            return self.value(f"{_BINARY[operation]} {_FAST} {self.real} {given[0]}, {given[1]}")
        if operation in _COMPARE:
            return self.value(f"fcmp {_COMPARE[operation]} {self.real} {given[0]}, {given[1]}")
        if operation in _CHOICE:
            # NaN is passed on from the first operand, as by the machine's own instruction.
            chosen = self.value(f"fcmp {_CHOICE[operation]} {self.real} {given[1]}, {given[0]}")
            return self.select(chosen, given[1], given[0])
        if operation == "select":
            return self.select(*given)
        if operation == "negate":
            return self.value(f"fneg {self.real} {given[0]}")
        if operation in ("exp", "log"):
            return self.value(f"call {self.real} @{operation}.{self.lanes}({self.real} {given[0]})")
        return self.intrinsic(operation, given[0])

    def intrinsic(self, name: str, argument: str) -> str:
        """Call a function that is one instruction of the machine."""
        return self.value(f"call {self.real} @{self.intrinsic_name(name)}({self.real} {argument})")

    def intrinsic_name(self, name: str) -> str:
        """Name of such a function for these vectors."""
        bits = "f32" if self.precision == "float" else "f64"
        return f"llvm.{name}.{bits if self.lanes == 1 else f'v{self.lanes}{bits}'}"

    def _name(self) -> str:
        self.body.count += 1
        return f"%v{self.body.count}"

    def select(self, condition: str, yes: str, no: str) -> str:
        """Choose between two vectors, lane by lane."""
        return self.value(f"select {self.truth} {condition}, {self.real} {yes}, {self.real} {no}")
