"""What the honesty checks compare, and the words they use when it fails."""

from __future__ import annotations

import numpy as np

from srs_eval.errors import SrsEvalError
from srs_eval.nouns import Algorithm, FloatArray, IntArray

# Sums depend on what is computed beside them, and iterations on what they end with. Of the
# algorithms that ship here, all in double precision, no prediction moves by more than 2e-13.
SAME_SHAPES = 1e-12
# Room for single precision, where there are more or fewer numbers than before.
_SINGLE = 1e-6
_IN_SINGLE_PRECISION = " (What was computed in single precision is to be returned as float32.)"


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
        By how much they may; None for what rounding may come to in their precision.
    """
    if np.shape(expected) != np.shape(found):
        raise CheckFailed(
            f"{named(algorithm)}: there are predictions of shape {np.shape(expected)} and "
            f"{np.shape(found)} for the same rows. Return one probability for each of `rows`."
        )
    room = _rounding(expected, found) if tolerance is None else tolerance
    same = np.isclose(expected, found, rtol=0.0, atol=room, equal_nan=True)
    moved = np.flatnonzero(~same)
    if len(moved):
        first = moved[0]
        digits = 17 if abs(expected[first] - found[first]) < _SINGLE else 6
        rounded = _IN_SINGLE_PRECISION if tolerance is None and digits == 17 else ""
        raise CheckFailed(
            f"{named(algorithm)}: the prediction of row {rows[first]} "
            f"({expected[first]:.{digits}g}, now {found[first]:.{digits}g}; "
            f"{len(moved)} of {len(rows)} differ) {lesson}.{rounded}"
        )


def _rounding(expected: FloatArray, found: FloatArray) -> float:
    """Say by how much numbers may differ that follow from the same in another order."""
    kinds = {np.asarray(expected).dtype, np.asarray(found).dtype}
    return _SINGLE if np.dtype(np.float32) in kinds else SAME_SHAPES


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
