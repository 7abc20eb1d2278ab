"""Formulas as graphs: what a model's equations become when they are traced.

Running an author's ordinary arithmetic on `Expression` objects records it. Equal
sub-expressions are recorded once and constants are folded, so the graph is what has to be
computed and no more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

from srs_eval.engine.equations import Value

Kind = Literal["number", "parameter", "varying"]

# Their value is known from outside: a number, a parameter, or something of the review.
LEAVES = frozenset({"number", "parameter", "state", "review", "adjoint", "sensitivity"})

# What is true or false, rather than a number.
_CONDITIONS = frozenset({"less", "at_most", "equal"})

_MOST_FACTORS = 8

_FOLD: dict[str, Callable[..., float]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "negate": lambda a: -a,
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "rint": lambda a: float(round(a)),
    "minimum": min,
    "maximum": max,
    "less": lambda a, b: float(a < b),
    "at_most": lambda a, b: float(a <= b),
    "equal": lambda a, b: float(a == b),
}


def _both_ways(operation: str) -> tuple[Callable[..., Expression], Callable[..., Expression]]:
    """Return methods that record an operation with an expression on the left, and on the right."""

    def on_left(self: Expression, other: Value) -> Expression:
        return self.graph.make(operation, self, other)

    def on_right(self: Expression, other: Value) -> Expression:
        return self.graph.make(operation, other, self)

    return on_left, on_right


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

    __add__, __radd__ = _both_ways("add")
    __sub__, __rsub__ = _both_ways("subtract")
    __mul__, __rmul__ = _both_ways("multiply")
    __truediv__, __rtruediv__ = _both_ways("divide")
    __lt__, __gt__ = _both_ways("less")
    __le__, __ge__ = _both_ways("at_most")

    def __neg__(self) -> Expression:
        return self.graph.make("negate", self)

    def __pow__(self, exponent: Value) -> Expression:
        return self.graph.power(self, exponent)

    def __rpow__(self, base: Value) -> Expression:
        return self.graph.power(base, self)

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return self.graph.make("equal", self, other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return self.graph.make("select", self == other, 0.0, 1.0) > 0.5

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise TypeError(
            "a model's equations cannot branch on a value with `if`, `and` or `or`: "
            "use m.where(condition, yes, no), which computes both"
        )


@dataclass(slots=True)
class Graph:
    """All expressions of a model, each recorded once."""

    nodes: list[Expression] = field(default_factory=list)
    _known: dict[tuple[object, ...], Expression] = field(default_factory=dict)

    def constant(self, value: float) -> Expression:
        """Return the expression of a plain number."""
        return self._record("number", (), float(value), "number")

    def leaf(self, operation: str, value: int | str) -> Expression:
        """Return a parameter, a state, an adjoint of a state, or a fact of the review."""
        kind: Kind = "parameter" if operation == "parameter" else "varying"
        return self._record(operation, (), value, kind)

    def make(self, operation: str, *operands: Value) -> Expression:
        """Return the expression of an operation, simplified where that is free."""
        given = tuple(self._expression(operand) for operand in operands)
        _refuse_misplaced_conditions(operation, given)
        folded = self._folded(operation, given)
        simpler = folded
        if folded is None and operation in _RULES:
            simpler = _RULES[operation](self, *given)
        if simpler is not None:
            return simpler
        return self._record(operation, given, 0.0, _kind(given))

    def power(self, base: Value, exponent: Value) -> Expression:
        """Return `base` to the power of `exponent`, avoiding logarithms where possible."""
        root = self._expression(base)
        power = self._expression(exponent)
        if power.operation == "number":
            number = float(power.value)
            if number == 0.5:
                return self.make("sqrt", root)
            if number.is_integer() and abs(number) <= _MOST_FACTORS:
                product = self._product(root, abs(int(number)))
                return product if number >= 0 else self.make("divide", 1.0, product)
        return self.make("exp", self.make("multiply", power, self.make("log", root)))

    def _product(self, factor: Expression, count: int) -> Expression:
        """Multiply a factor by itself, in as few steps as squaring allows."""
        if count == 0:
            return self.constant(1.0)
        half = self._product(factor, count // 2)
        square = self.make("multiply", half, half)
        return self.make("multiply", square, factor) if count % 2 else square

    def _expression(self, value: Value) -> Expression:
        if isinstance(value, Expression):
            return value
        return self.constant(value)

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
        if key not in self._known:
            made = Expression(self, len(self.nodes), operation, operands, value, kind)
            self.nodes.append(made)
            self._known[key] = made
        return self._known[key]


def needed(outputs: Iterable[Expression], given: Iterable[int] = ()) -> list[Expression]:
    """List what must be computed for `outputs`, operands first, if numbers `given` are known."""
    seen = set(given)
    found: list[Expression] = []
    waiting = list(outputs)
    while waiting:
        expression = waiting.pop()
        if expression.number not in seen:
            seen.add(expression.number)
            found.append(expression)
            waiting.extend(expression.operands)
    return sorted(found, key=lambda expression: expression.number)


def fixed_inputs(outputs: Iterable[Expression]) -> list[Expression]:
    """List the quantities of the parameters alone that `outputs` are directly made of.

    They have one value for all reviews, so they are worth computing beforehand.
    """
    found: dict[int, Expression] = {}
    seen: set[int] = set()
    waiting = list(outputs)
    while waiting:
        expression = waiting.pop()
        # Conditions are not kept in registers: what they compare is.
        if expression.kind == "parameter" and expression.operation not in _CONDITIONS:
            found[expression.number] = expression
        elif expression.number not in seen:
            seen.add(expression.number)
            waiting.extend(expression.operands)
    return [found[number] for number in sorted(found)]


def _kind(operands: tuple[Expression, ...]) -> Kind:
    kinds = {operand.kind for operand in operands}
    if "varying" in kinds:
        return "varying"
    return "parameter" if "parameter" in kinds else "number"


def _is(expression: Expression, number: float) -> bool:
    return expression.operation == "number" and expression.value == number


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


def _add(graph: Graph, a: Expression, b: Expression) -> Expression | None:
    if _is(a, 0.0):
        return b
    if _is(b, 0.0):
        return a
    if b.operation == "negate":
        return a - b.operands[0]
    return b - a.operands[0] if a.operation == "negate" else None


def _subtract(graph: Graph, a: Expression, b: Expression) -> Expression | None:
    if _is(b, 0.0):
        return a
    if _is(a, 0.0):
        return -b
    return a + b.operands[0] if b.operation == "negate" else None


def _multiply(graph: Graph, a: Expression, b: Expression) -> Expression | None:
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
        return graph.make("exp", a.operands[0] + b.operands[0])
    return None


def _divide(graph: Graph, a: Expression, b: Expression) -> Expression | None:
    if _is(a, 0.0) or _is(b, 1.0):
        return a
    if b.operation == "number" and b.value != 0.0:
        return a * (1.0 / float(b.value))
    if b.kind == "parameter" and a.kind == "varying":
        return a * (1.0 / b)  # one division for all reviews
    return None


def _undoes(inverse: str) -> Callable[..., Expression | None]:
    """Return the rule that an operation and its inverse leave the operand as it was."""
    return lambda graph, a: a.operands[0] if a.operation == inverse else None


def _select(graph: Graph, c: Expression, a: Expression, b: Expression) -> Expression | None:
    if c.operation == "number":  # the author compared plain numbers
        return a if c.value else b
    return a if a is b else None


_RULES: dict[str, Callable[..., Expression | None]] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "divide": _divide,
    "negate": _undoes("negate"),
    "exp": _undoes("log"),
    "log": _undoes("exp"),
    "select": _select,
}


def _recorded(operation: str) -> Callable[..., Expression]:
    """Return a method that records an operation instead of computing it."""
    return lambda self, *values: self.graph.make(operation, *values)


@dataclass(frozen=True, slots=True)
class TracingMaths:
    """`Maths` on expressions."""

    graph: Graph

    exp, log, rint = _recorded("exp"), _recorded("log"), _recorded("rint")
    minimum, maximum, where = _recorded("minimum"), _recorded("maximum"), _recorded("select")

    def clip(self, value: Value, low: Value, high: Value) -> Expression:
        return self.minimum(self.maximum(value, low), high)
