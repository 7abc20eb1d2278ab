"""Turn whatever a file or a caller holds into plain numpy columns, marking what does not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from srs_eval.nouns import BoolArray, FloatArray, IntArray

_ROWS_QUOTED = 3
_LARGEST = np.iinfo(np.int64).max


def whole_numbers(values: Any) -> tuple[IntArray, BoolArray]:
    """Read a column as whole numbers.

    Unsigned, nullable, textual and floating columns are taken too, where each value is a
    whole number that fits into 64 bits.

    Parameters
    ----------
    values : array-like [n]

    Returns
    -------
    numbers : int64 [n]
        0 where the value is not a whole number.
    bad : bool [n]
        Whether the value is missing, not a number, or has a fraction.

    Examples
    --------
    >>> numbers, bad = whole_numbers([3.0, None, 2.5])
    >>> numbers.tolist(), bad.tolist()
    ([3, 0, 0], [False, True, True])
    """
    array = _plain(values)
    if array.dtype.kind == "i":
        return array.astype(np.int64), np.zeros(len(array), bool)
    if array.dtype.kind == "u":
        bad = array > _LARGEST
        return np.where(bad, 0, array).astype(np.int64), bad
    floats = _floats(array)
    # 2**63 itself is a float but not an int64.
    good = np.isfinite(floats) & (floats == np.floor(floats)) & (np.abs(floats) < 2.0**63)
    return np.where(good, floats, 0).astype(np.int64), ~good


def numbers(values: Any) -> FloatArray:
    """Read a column as float64, with NaN where the value is missing or not a number.

    Examples
    --------
    >>> numbers(["1.5", None, "soon"]).tolist()
    [1.5, nan, nan]
    """
    return _floats(_plain(values))


def shown(values: Any, row: int) -> str:
    """Write one value of a column the way a message quotes it."""
    value = values.iloc[row] if isinstance(values, pd.Series) else values[row]
    if value is None or value is pd.NA or value is pd.NaT:
        return "nothing"
    if isinstance(value, np.generic):
        value = value.item()
    return repr(value)


def identities(values: pd.Series) -> pd.Series:
    """Turn the cards of a column into numbers; whole numbers stay what they are.

    Text is numbered 0, 1, 2, … in order of first appearance, unless all of it is whole
    numbers in their plain form. Missing values stay missing.

    Examples
    --------
    >>> identities(pd.Series(["b", "a", "b"])).tolist()
    [0, 1, 0]
    >>> identities(pd.Series(["30", "4"])).tolist()
    [30, 4]
    """
    if values.dtype.kind in "iuf":
        return values
    present = values.dropna().astype("str")
    parsed = pd.to_numeric(present, errors="coerce")
    if parsed.dtype == np.int64 and bool((parsed.astype("str") == present).all()):
        return parsed.astype("Int64").reindex(values.index)
    codes, _ = pd.factorize(values)
    return pd.Series(codes, index=values.index, dtype="Int64").mask(codes < 0)


def violations(
    name: str, values: Any, bad: BoolArray, expected: str, row_name: Callable[[int], str]
) -> list[str]:
    """Describe the values of a column that break a rule.

    Returns
    -------
    list of str
        Empty if none does; else one line with the first few and the count of the others.
    """
    rows = np.flatnonzero(bad)
    if not len(rows):
        return []
    quoted = ", ".join(
        f"{row_name(int(row))} has {shown(values, int(row))}" for row in rows[:_ROWS_QUOTED]
    )
    further = len(rows) - _ROWS_QUOTED
    more = f" and {further} further row{'s' * (further > 1)}" if further > 0 else ""
    return [f"{name}: {quoted}{more}; expected {expected}"]


def _plain(values: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """Strip pandas from a column; text and mixed columns become numbers where they can."""
    array = np.asarray(values)
    if array.dtype.kind in "iuf":
        return array
    if array.dtype.kind == "b":
        # True is not a rating, nor a day.
        return np.full(len(array), np.nan)
    parsed = pd.to_numeric(pd.Series(array, dtype=object), errors="coerce")
    return parsed.to_numpy() if parsed.dtype.kind in "iuf" else _floats(parsed)


def _floats(values: Any) -> FloatArray:
    """Convert to float64, missing values becoming NaN."""
    if isinstance(values, np.ndarray):
        return values.astype(np.float64)
    result: FloatArray = values.to_numpy(dtype=np.float64, na_value=np.nan)
    return result
