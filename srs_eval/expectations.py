"""What the honesty checks compare, and the words they use when it fails."""

from __future__ import annotations

import numpy as np

from srs_eval.errors import SrsEvalError
from srs_eval.nouns import Algorithm, FloatArray, IntArray

# Room for single precision, whose sums depend on what is computed beside them.
_TOLERANCE = 1e-6


class CheckFailed(SrsEvalError):
    """An algorithm that does what no algorithm may, and where to look for it."""


def expect_same(
    algorithm: Algorithm,
    expected: FloatArray,
    found: FloatArray,
    rows: IntArray,
    lesson: str,
    *,
    tolerance: float = _TOLERANCE,
) -> None:
    """Raise if predictions of the same rows differ; `lesson` ends the sentence about it."""
    if np.shape(expected) != np.shape(found):
        raise CheckFailed(
            f"{named(algorithm)}: there are predictions of shape {np.shape(expected)} and "
            f"{np.shape(found)} for the same rows. Return one probability for each of `rows`."
        )
    same = np.isclose(expected, found, rtol=0.0, atol=tolerance, equal_nan=True)
    moved = np.flatnonzero(~same)
    if len(moved):
        first = moved[0]
        raise CheckFailed(
            f"{named(algorithm)}: the prediction of row {rows[first]} ({expected[first]:.6g}, now "
            f"{found[first]:.6g}; {len(moved)} of {len(rows)} differ) {lesson}."
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
    """Name an algorithm by its class."""
    return type(algorithm).__name__
