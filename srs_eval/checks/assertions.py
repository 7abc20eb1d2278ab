"""What the honesty checks compare, and the words they use when it fails."""

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
# Rounding takes sides as often as this by accident.
_BY_ACCIDENT = 1e-4


class CheckFailed(SrsEvalError):
    """An algorithm that does what no algorithm may, and where to look for it."""


def expect_same(
    algorithm: Algorithm,
    expected: FloatArray,
    found: FloatArray,
    rows: IntArray,
    lesson: str,
    *,
    tolerance: float | None = None,
) -> None:
    """Raise if predictions of the same rows differ; `lesson` ends the sentence about it.

    Parameters
    ----------
    tolerance : float, optional
        By how much they may; None for what rounding may come to in their precision, of which
        `Sides` finds out whether it gives anything away.
    """
    for p in (expected, found):
        expect_shape(algorithm, p, np.shape(rows))
    room = _rounding(expected, found) if tolerance is None else tolerance
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
            f"{len(moved)} of {len(rows)} differ) {lesson}.{rounded}"
        )


def expect_shape(algorithm: Algorithm, p: FloatArray, shape: tuple[int, ...]) -> None:
    """Raise unless there is one prediction for each row."""
    if np.shape(p) != shape:
        raise CheckFailed(
            f"{named(algorithm)}: predictions have shape {np.shape(p)}, not {shape}. "
            "Return one probability for each of `rows`."
        )


class Sides:
    """Differences between predictions for opposite outcomes, too small to tell from rounding.

    Rounding takes the side of the outcome about as often as the other side; what knows the
    outcome takes its side nearly always, and ranks reviews by it however small it is.
    """

    def __init__(self) -> None:
        self._towards: list[float] = []

    def add(self, towards: FloatArray | float) -> None:
        """Add by how much predictions are higher where the outcome is the better one."""
        self._towards += np.ravel(towards).tolist()

    def expect_none(self, algorithm: Algorithm, lesson: str) -> None:
        """Raise if the differences take one side; `lesson` ends the sentence about it.

        Of few rows all may not.
        """
        towards = np.array(self._towards)
        up, down = int((towards > 0).sum()), int((towards < 0).sum())
        n = up + down
        chance = 2 * sum(math.comb(n, k) for k in range(min(up, down) + 1)) / 2**n
        if n and chance <= max(_BY_ACCIDENT, 2.0 ** (1 - len(towards))):
            raise CheckFailed(
                f"{named(algorithm)}: predictions {lesson}. They move by no more than "
                f"{np.abs(towards).max():.2g}, but of {n} that move, {max(up, down)} move to the "
                "same side, which rounding would not do: it ranks reviews, however little it is"
            )


def _rounding(expected: FloatArray, found: FloatArray) -> float:
    """Say by how much numbers may differ that follow from the same in another order."""
    kinds = {np.asarray(expected).dtype, np.asarray(found).dtype}
    return _SINGLE if np.dtype(np.float32) in kinds else _DOUBLE


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
    """Name an algorithm by its class."""
    return type(algorithm).__name__


def expect_learned_values(algorithm: Algorithm, model: MemoryModel) -> FloatArray:
    """Read what a model says it has learned, as runs record it; nothing if it says nothing.

    Raises
    ------
    CheckFailed
        If these are no numbers one after the other.
    """
    try:
        values = [float(value) for value in getattr(model, "parameters", ())]
    except (TypeError, ValueError) as error:
        raise CheckFailed(
            f"{named(algorithm)}: its `parameters` cannot be recorded ({error}). They are plain "
            "numbers one after the other, or a numpy array of one dimension"
        ) from error
    return np.array(values)
