"""Assertions of the honesty checks, and their messages."""

from __future__ import annotations

import math

import numpy as np

from srs_eval.errors import SrsEvalError
from srs_eval.nouns import Algorithm, FloatArray, IntArray, MemoryModel

# Sums depend on what is computed beside them, and iterations on what they end with. Of the
# algorithms that ship here, all in double precision, no prediction moves by more than 2e-13.
_DOUBLE = 1e-12
# The same in single precision.
_SINGLE = 1e-6
_IN_SINGLE_PRECISION = (
    " (As small a difference can be rounding, where what is computed beside a row changes how it "
    "is computed: what was computed in single precision is to be returned as float32.)"
)
# Significance level of the sign test.
_SIGNIFICANCE = 1e-4


class CheckFailed(SrsEvalError):
    """An algorithm failed a check; the message says what it did and where to look."""


def expect_same(
    algorithm: Algorithm,
    expected: FloatArray,
    found: FloatArray,
    rows: IntArray,
    advice: str,
    *,
    tolerance: float | None = None,
    side: IntArray | None = None,
) -> None:
    """Raise if predictions of the same rows differ; `advice` ends the message.

    Without a `tolerance`, differences up to rounding are allowed, which `SignTest` examines: with
    `side`, 1 where a move up is towards the outcome and -1 where one down is, here.
    """
    for p in (expected, found):
        expect_shape(algorithm, p, np.shape(rows))
    kinds = {np.asarray(expected).dtype, np.asarray(found).dtype}
    rounding = _SINGLE if np.dtype(np.float32) in kinds else _DOUBLE
    room = rounding if tolerance is None else tolerance
    same = np.isclose(expected, found, rtol=0.0, atol=room, equal_nan=True)
    moved = np.flatnonzero(~same)
    if len(moved):
        expected, found, rows = np.ravel(expected), np.ravel(found), np.ravel(rows)
        first = moved[0]
        digits = 17 if abs(expected[first] - found[first]) < _SINGLE else 6
        rounded = _IN_SINGLE_PRECISION if tolerance is None and digits == 17 else ""
        raise CheckFailed(
            f"{named(algorithm)}: the prediction of row {rows[first]} "
            f"({expected[first]:.{digits}g}, now {found[first]:.{digits}g}; "
            f"{len(moved)} of {len(rows)} differ) {advice}.{rounded}"
        )
    if side is not None:
        sides = SignTest()
        sides.add((expected - found) * side)
        sides.expect_none(algorithm, advice)


def expect_shape(algorithm: Algorithm, p: FloatArray, shape: tuple[int, ...]) -> None:
    """Raise unless there is one prediction for each row."""
    if np.shape(p) != shape:
        raise CheckFailed(
            f"{named(algorithm)}: predictions have shape {np.shape(p)}, not {shape}. "
            "Return one probability for each of `rows`."
        )


class SignTest:
    """A sign test of differences between predictions that may be rounding.

    Rounding moves a prediction towards the outcome as often as away from it. A model that knows
    the outcome moves towards it nearly always, and ranks reviews by it however small the move.
    """

    def __init__(self) -> None:
        self._towards: list[float] = []

    def add(self, towards: FloatArray | float) -> None:
        """Add by how much predictions are higher where the outcome is the better one."""
        self._towards += np.ravel(towards).tolist()

    def expect_none(self, algorithm: Algorithm, advice: str) -> None:
        """Raise if the differences have one sign too often; `advice` ends the message.

        With few rows, if all of them do.
        """
        towards = np.array(self._towards)
        up, down = int((towards > 0).sum()), int((towards < 0).sum())
        n = up + down
        chance = 2 * sum(math.comb(n, k) for k in range(min(up, down) + 1)) / 2**n
        if n and chance <= max(_SIGNIFICANCE, 2.0 ** (1 - len(towards))):
            raise CheckFailed(
                f"{named(algorithm)}: predictions {advice}. They move by no more than "
                f"{np.abs(towards).max():.2g}, but of {n} that move, {max(up, down)} move to the "
                "same side, which rounding would not do: it ranks reviews, however little it is"
            )


def expect_probabilities(
    algorithm: Algorithm, p: FloatArray, shape: tuple[int, ...], method: str
) -> None:
    """Raise unless `p` has the shape and type of probabilities and lies inside (0, 1)."""
    found = np.asarray(p)
    if found.shape != shape:
        raise CheckFailed(f"{named(algorithm)}: {method} has shape {found.shape}, not {shape}.")
    if found.dtype not in (np.float32, np.float64):
        raise CheckFailed(
            f"{named(algorithm)}: {method} returns {found.dtype}, not float32 or float64."
        )
    wrong = found[~((found > 0) & (found < 1))]
    if len(wrong):
        raise CheckFailed(
            f"{named(algorithm)}: {len(wrong)} of {found.size} numbers of {method} are not "
            f"probabilities above 0 and below 1, the first is {wrong[0]}. "
            "Nothing is certain: keep a little distance from 0 and 1."
        )


def named(algorithm: Algorithm) -> str:
    """Return the name of an algorithm's class."""
    return type(algorithm).__name__


def expect_learned_values(algorithm: Algorithm, model: MemoryModel) -> FloatArray:
    """Return the parameters of a model as runs record them; empty if it has none."""
    try:
        values = [float(value) for value in getattr(model, "parameters", ())]
    except (TypeError, ValueError) as error:
        raise CheckFailed(
            f"{named(algorithm)}: its `parameters` cannot be recorded ({error}). They are plain "
            "numbers one after the other, or a numpy array of one dimension"
        ) from error
    return np.array(values)
