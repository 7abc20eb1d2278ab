"""Formulas as graphs: what a model's equations become when they are traced.

Running an author's ordinary arithmetic on `Expression` objects records it. Equal
sub-expressions are recorded once and constants are folded, so the graph is what has to be
computed and no more.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partialmethod
from typing import Literal

from srs_eval.engine.equations import Value

Kind = Literal["number", "parameter", "varying"]

# Their value is known from outside: a number, a parameter, or something of the review.
LEAVES = frozenset({"number", "parameter", "state", "review", "adjoint", "sensitivity"})

# What is true or false, rather than a number.
_CONDITIONS = frozenset({"less", "at_most", "equal"})

_MOST_FACTORS = 8

_FOLD: dict[str, Callable[..., float]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "negate": operator.neg,
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "rint": round,
    "minimum": min,
    "maximum": max,
    "less": operator.lt,
    "at_most": operator.le,
    "equal": operator.eq,
}


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """One quantity of a formula; operators on it make further ones."""

    graph: Graph
    number: int  # Position in the graph: operands come before what is made of them
    operation: str  # How it is computed, or one of `LEAVES`
    operands: tuple[Expression, ...]  # What it is computed of
    # The number of a constant, the index of a parameter or state, the name of a fact
    value: float | int | str
    kind: Kind  # Whether it is fixed for ever, for one set of parameters, or varies by review

    def _left(self, operation: str, other: Value) -> Expression:
        return self.graph.make(operation, self, other)

    def _right(self, operation: str, other: Value) -> Expression:
        return self.graph.make(operation, other, self)

    __add__, __radd__ = partialmethod(_left, "add"), partialmethod(_right, "add")
    __sub__, __rsub__ = partialmethod(_left, "subtract"), partialmethod(_right, "subtract")
    __mul__, __rmul__ = partialmethod(_left, "multiply"), partialmethod(_right, "multiply")
    __truediv__, __rtruediv__ = partialmethod(_left, "divide"), partialmethod(_right, "divide")
    __lt__, __gt__ = partialmethod(_left, "less"), partialmethod(_right, "less")
    __le__, __ge__ = partialmethod(_left, "at_most"), partialmethod(_right, "at_most")

    def __neg__(self) -> Expression:
        return self.graph.make("negate", self)

    def __pow__(self, exponent: Value) -> Expression:
        return self.graph.power(self, exponent)

    def __rpow__(self, base: Value) -> Expression:
        return self.graph.power(base, self)

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return self.graph.make("equal", self, other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return self.graph.where(self == other, 0.0, 1.0) > 0.5

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise TypeError(
            "a model's equations cannot branch on a value with `if`, `and` or `or`: "
            "use m.where(condition, yes, no), which computes both"
        )


@dataclass(slots=True)
class Graph:
    """All expressions of a model, each recorded once; the `Maths` of its equations."""

    nodes: list[Expression] = field(default_factory=list)
    _recorded: dict[tuple[object, ...], Expression] = field(default_factory=dict)

    def constant(self, value: float) -> Expression:
        """Return the expression of a plain number."""
        return self._record("number", (), float(value), "number")

    def leaf(self, operation: str, value: int | str) -> Expression:
        """Return a parameter, a state, an adjoint of a state, or a fact of the review."""
        kind: Kind = "parameter" if operation == "parameter" else "varying"
        return self._record(operation, (), value, kind)

    def make(self, operation: str, *values: Value) -> Expression:
        """Return the expression of an operation, simplified where that is free."""
        operands = tuple(map(self.expression, values))
        _refuse_misplaced_conditions(operation, operands)
        for simpler in (self._folded(operation, operands), _simplified(self, operation, *operands)):
            if simpler is not None:
                return simpler
        return self._record(operation, operands, 0.0, _kind(operands))

    exp, log = partialmethod(make, "exp"), partialmethod(make, "log")
    minimum, maximum = partialmethod(make, "minimum"), partialmethod(make, "maximum")
    rint, where = partialmethod(make, "rint"), partialmethod(make, "select")

    def clip(self, value: Value, low: Value, high: Value) -> Expression:
        return self.minimum(self.maximum(value, low), high)

    def power(self, base: Value, exponent: Value) -> Expression:
        """Return `base` to the power of `exponent`, avoiding logarithms where possible."""
        root = self.expression(base)
        power = self.expression(exponent)
        if power.operation == "number":
            number = float(power.value)
            if number == 0.5:
                return self.make("sqrt", root)
            if number.is_integer() and abs(number) <= _MOST_FACTORS:
                product = self._product(root, abs(int(number)))
                return product if number >= 0 else self.make("divide", 1.0, product)
        return self.exp(power * self.log(root))

    def _product(self, factor: Expression, count: int) -> Expression:
        """Multiply a factor by itself, in as few steps as squaring allows."""
        if count == 0:
            return self.constant(1.0)
        half = self._product(factor, count // 2)
        square = half * half
        return square * factor if count % 2 else square

    def expression(self, value: Value) -> Expression:
        """Turn a plain number into an expression."""
        return value if isinstance(value, Expression) else self.constant(value)

    def _folded(self, operation: str, operands: tuple[Expression, ...]) -> Expression | None:
        fold = _FOLD.get(operation)
        if fold is None or any(operand.operation != "number" for operand in operands):
            return None
        try:
            return self.constant(fold(*(operand.value for operand in operands)))
        except (ArithmeticError, ValueError):  # such as log(0): left to run time
            return None

    def _record(
        self, operation: str, operands: tuple[Expression, ...], value: float | str, kind: Kind
    ) -> Expression:
        key = (operation, value, *(operand.number for operand in operands))
        if key not in self._recorded:
            expression = Expression(self, len(self.nodes), operation, operands, value, kind)
            self.nodes.append(expression)
            self._recorded[key] = expression
        return self._recorded[key]


def needed(outputs: Iterable[Expression], without: Iterable[int] = ()) -> list[Expression]:
    """List what must be computed for `outputs`, operands first; numbers `without` are known."""
    seen = set(without)
    expressions: list[Expression] = []
    waiting = list(outputs)
    while waiting:
        expression = waiting.pop()
        if expression.number not in seen:
            seen.add(expression.number)
            expressions.append(expression)
            waiting.extend(expression.operands)
    return sorted(expressions, key=lambda expression: expression.number)


def fixed_inputs(outputs: Iterable[Expression]) -> list[Expression]:
    """List the quantities of the parameters alone that `outputs` are directly made of.

    They have one value for all reviews, so they are worth computing beforehand.
    """
    inputs: dict[int, Expression] = {}
    seen: set[int] = set()
    waiting = list(outputs)
    while waiting:
        expression = waiting.pop()
        # Conditions are not kept in registers: what they compare is.
        if expression.kind == "parameter" and expression.operation not in _CONDITIONS:
            inputs[expression.number] = expression
        elif expression.number not in seen:
            seen.add(expression.number)
            waiting.extend(expression.operands)
    return [inputs[number] for number in sorted(inputs)]


def _kind(operands: tuple[Expression, ...]) -> Kind:
    kinds = {operand.kind for operand in operands}
    if "varying" in kinds:
        return "varying"
    return "parameter" if "parameter" in kinds else "number"


def _refuse_misplaced_conditions(operation: str, operands: tuple[Expression, ...]) -> None:
    """Only the first of three choices is a condition (or a number that stands for one)."""
    first = operands[0].operation
    allowed = 1 if operation == "select" else 0
    missing = operation == "select" and first not in _CONDITIONS and first != "number"
    if missing or any(operand.operation in _CONDITIONS for operand in operands[allowed:]):
        raise TypeError(
            "in a model's equations, comparisons stand as the first argument of m.where, and "
            "nowhere else; nothing else stands there"
        )


def _is(expression: Expression, number: float) -> bool:
    return expression.operation == "number" and expression.value == number


def _simplified(
    graph: Graph, operation: str, a: Expression, b: Expression | None = None, *c: Expression
) -> Expression | None:
    """Return what an operation comes to where that is less work."""
    match operation:
        case "negate" | "exp" | "log":
            inverse = {"negate": "negate", "exp": "log", "log": "exp"}[operation]
            return a.operands[0] if a.operation == inverse else None
        case "select" if a.operation == "number":  # the author compared plain numbers
            return b if a.value else c[0]
        case "select":
            return b if b is c[0] else None
    if b is None:
        return None
    match operation:
        case "add" if _is(a, 0.0):
            return b
        case "add" | "subtract" if _is(b, 0.0):
            return a
        case "add" if b.operation == "negate":
            return a - b.operands[0]
        case "add" if a.operation == "negate":
            return b - a.operands[0]
        case "subtract" if _is(a, 0.0):
            return -b
        case "subtract" if b.operation == "negate":
            return a + b.operands[0]
        case "multiply":
            return _multiplied(graph, a, b)
        case "divide" if _is(a, 0.0) or _is(b, 1.0):
            return a
        case "divide" if b.operation == "number" and b.value != 0.0:
            return a * (1.0 / float(b.value))
        case "divide" if b.kind == "parameter" and a.kind == "varying":
            return a * (1.0 / b)  # one division for all reviews
    return None


def _multiplied(graph: Graph, a: Expression, b: Expression) -> Expression | None:
    for one, other in ((a, b), (b, a)):
        if _is(one, 0.0):
            return one
        if _is(one, 1.0):
            return other
        if _is(one, -1.0):
            return -other
        if one.operation == "negate":
            return -(one.operands[0] * other)
    if a.operation == b.operation == "exp" and a.kind == b.kind:
        return graph.exp(a.operands[0] + b.operands[0])
    return None
