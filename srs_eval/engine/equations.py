"""How a memory model is written down: a start, a forgetting curve, an update.

A model is ordinary arithmetic on its state, with a small mathematics namespace `m` for what
operators cannot say, and with ``m.where`` instead of ``if``. It says nothing about arrays,
cards or loops, so the same text can be interpreted, traced or differentiated.
"""

from __future__ import annotations

from typing import Any, Protocol, cast

import numpy as np

from srs_eval.data.reviews import FloatArray
from srs_eval.engine.parameters import ParameterSpace

# Whatever arithmetic works on: numbers, arrays of one value per card, or expressions.
Value = Any
State = tuple[Value, ...]


class Maths(Protocol):
    """Functions an author may use beside ``+ - * / **`` and comparisons."""

    def exp(self, value: Value) -> Value:
        """Return e to the power of `value`."""

    def log(self, value: Value) -> Value:
        """Return the natural logarithm."""

    def where(self, condition: Value, yes: Value, no: Value) -> Value:
        """Choose between two values, both of which are computed."""

    def minimum(self, left: Value, right: Value) -> Value:
        """Return the smaller value."""

    def maximum(self, left: Value, right: Value) -> Value:
        """Return the larger value."""

    def clip(self, value: Value, low: Value, high: Value) -> Value:
        """Move `value` into ``[low, high]``."""

    def rint(self, value: Value) -> Value:
        """Round to the nearest whole number, halves to the even one."""


class Equations(Protocol):
    """A recurrent memory model as mathematics.

    Make it a frozen dataclass: equal equations are compiled once.
    """

    def __hash__(self) -> int:
        """Return the same for equal equations."""

    @property
    def state_names(self) -> tuple[str, ...]:
        """What the values of the state are."""

    @property
    def parameters(self) -> ParameterSpace:
        """Defaults and bounds of `w`."""

    def init(self, m: Maths, w: Value, rating: Value) -> State:
        """State after the card's first review."""

    def curve(self, m: Maths, w: Value, state: State, elapsed: Value) -> Value:
        """Probability of recall `elapsed` days after the review that left `state`."""

    def step(
        self, m: Maths, w: Value, state: State, elapsed: Value, rating: Value, p: Value
    ) -> State:
        """State after a review `elapsed` days later, where recall had probability `p`."""


# Numpy has all of them, for arrays and plain numbers.
NUMPY_MATHS = cast(Maths, np)

_SMALLEST = float(np.finfo(np.float64).tiny)
_LARGEST = 1.0 - float(np.finfo(np.float64).epsneg)


def uncertain(p: FloatArray) -> FloatArray:
    """Replace a 0 or 1 by the nearest ordinary number inside (0, 1).

    Moves nothing by more than 1.2e-16, which no score shows, but keeps the promise that a
    prediction is never certain. NaN stays NaN, for the caller to refuse.

    >>> import numpy as np
    >>> uncertain(np.array([0.0, 0.5, 1.0])).tolist()
    [2.2250738585072014e-308, 0.5, 0.9999999999999999]
    """
    return np.minimum(np.maximum(p, _SMALLEST), _LARGEST)
