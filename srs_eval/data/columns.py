"""Turn whatever a file or a caller holds into plain numpy columns, marking what does not fit."""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from srs_eval.errors import Violation
from srs_eval.nouns import BoolArray, FloatArray, IntArray

# From here on, not every whole number is a float.
EXACT_FLOAT = 2.0**53

# The largest float has 309 digits.
_DIGITS = 300
_ROWS_QUOTED = 3
_CHARACTERS_QUOTED = 60
_BRIEF = reprlib.Repr()
_BRIEF.maxother = _BRIEF.maxlong = _CHARACTERS_QUOTED
_LARGEST = np.iinfo(np.int64).max


def whole_numbers(values: Any) -> tuple[IntArray, BoolArray]:
    """Read a column as whole numbers, int64 [n]; also return which are bad, bool [n].

    Unsigned, nullable, textual and floating columns are taken too. A value is bad, and 0, if it is
    missing, not a number, has a fraction, does not fit into 64 bits, or is a float so large that it
    has lost digits.

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
    good = np.isfinite(floats) & (floats == np.floor(floats)) & (np.abs(floats) < EXACT_FLOAT)
    return np.where(good, floats, 0).astype(np.int64), ~good


def numbers(values: Any) -> FloatArray:
    """Read a column as float64, with NaN where the value is missing or not a number.

    >>> numbers(["1.5", None, "soon"]).tolist()
    [1.5, nan, nan]
    """
    return _floats(_plain(values))


def shown(values: Any, row: int) -> str:
    """Write one value of a column the way a message quotes it."""
    if isinstance(values, pd.Series) and values.dtype.kind == "M":
        # Not as a Timestamp: those of far years cannot be written in every zone.
        one = values.iloc[[row]]
        utc = one if one.dt.tz is None else one.dt.tz_convert("UTC").dt.tz_localize(None)
        return "nothing" if one.isna().all() else str(utc.to_numpy()[0])
    value = values.iloc[row] if isinstance(values, pd.Series) else values[row]
    if value is None or value is pd.NA or value is pd.NaT:
        return "nothing"
    if isinstance(value, np.generic):
        value = value.item()
    return cut(value)


def cut(value: Any) -> str:
    """Write a value the way a message quotes it, only the beginning if it is long.

    >>> cut("a" * 100_000)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'… (100,000 characters)"
    """
    # No more than is shown: the text of a large array or list takes long to write.
    text = value if isinstance(value, str) else _BRIEF.repr(value)
    if len(text) <= _CHARACTERS_QUOTED:
        return repr(text) if isinstance(value, str) else text
    head = text[:_CHARACTERS_QUOTED]
    return f"{head!r}… ({len(text):,} characters)" if isinstance(value, str) else f"{head}…"


def texts(values: pd.Series) -> pd.Series:
    """Write each value of a column as text without blanks around it; missing for bytes and times.

    >>> texts(pd.Series([" yes", True, b"no"])).tolist()
    ['yes', 'True', nan]
    """
    if values.dtype.kind in "mM":
        return pd.Series(None, index=values.index, dtype="str")
    if values.dtype.kind == "O":
        values = values.map(
            lambda value: None if isinstance(value, bytes) else str(value), na_action="ignore"
        )
    stripped: pd.Series = values.astype("str").str.strip()
    return stripped.where(values.notna(), None)


def scalars(values: Any) -> list[Any]:
    """Return the values of a column that are a text or a number; None in place of all others.

    >>> scalars([1, "b", [2], b"c", True, None])
    [1, 'b', None, None, None, None]
    """
    if isinstance(values, pd.Series) and values.dtype.kind in "mM":
        return [None] * len(values)  # without writing each down, which fails in far years
    return [value if _is_scalar(value) else None for value in values]


def _is_scalar(value: Any) -> bool:
    """Whether a value is a text or a real number; NaN and True are not."""
    if isinstance(value, bool | np.bool_):
        return False
    return isinstance(value, str) or (isinstance(value, Real | Decimal) and value == value)


def without_categories(values: pd.Series) -> pd.Series:
    """Return the values of a categorical column; other columns as they are.

    >>> without_categories(pd.Series([7, None], dtype="category")).tolist()
    [7.0, nan]
    """
    if not isinstance(values.dtype, pd.CategoricalDtype):
        return values
    plain = pd.Series(values.cat.categories.array).reindex(values.cat.codes)
    return plain.set_axis(values.index)


def violations(
    name: str,
    values: Any,
    bad: BoolArray,
    expected: str,
    row_name: Callable[[int], str],
    kind: str = "wrong_type",
) -> list[Violation]:
    """Describe the values of a column that break a rule; return an empty list if none does.

    Otherwise the list has one violation, with the first few values and the count of the others. Its
    kind is `kind`, or ``missing`` if all of these values are missing.
    """
    rows = np.flatnonzero(bad)
    if not len(rows):
        return []
    places = [row_name(int(row)) for row in rows[:_ROWS_QUOTED]]
    quoted = ", ".join(
        f"{place} has {shown(values, int(row))}" for place, row in zip(places, rows, strict=False)
    )
    further = len(rows) - _ROWS_QUOTED
    more = f" and {further} further row{'s' * (further > 1)}" if further > 0 else ""
    column = values if isinstance(values, pd.Series) else pd.Series(list(values), dtype=object)
    kind = "missing" if column.iloc[rows].isna().all() else kind
    return [Violation(f"{name}: {quoted}{more}; expected {expected}", kind, name, places)]


def _plain(values: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """Strip pandas from a column; text and mixed columns become numbers where they can."""
    if isinstance(values, pd.Series):
        values = without_categories(values)
    if isinstance(values, pd.Series) and values.dtype.kind in "mM":
        return np.full(len(values), np.nan)
    try:
        array = np.asarray(values)
    except ValueError:  # lists of different lengths
        array = np.asarray(scalars(values), object)
    if array.ndim != 1:
        array = np.full(len(array), None, object)
    if array.dtype.kind in "iuf":
        return array
    if array.dtype.kind not in "OUST":
        # True is not a rating, nor a day; nor is a date a number.
        return np.full(len(array), np.nan)
    mixed = array.dtype.kind == "O"
    parsed = numbers_in(pd.Series(scalars(array) if mixed else array, dtype=object))
    return parsed.to_numpy() if parsed.dtype.kind in "iuf" else _floats(parsed)


def numbers_in(values: pd.Series[Any]) -> pd.Series[Any]:
    """Parse what is a number; everything else becomes missing."""
    try:
        return pd.to_numeric(values, errors="coerce")
    except OverflowError:  # pandas does not coerce a number beyond the range of floats
        return pd.to_numeric(values.where(values.astype(str).str.len() < _DIGITS), errors="coerce")


def _floats(values: Any) -> FloatArray:
    """Convert to float64, missing values becoming NaN."""
    if isinstance(values, np.ndarray):
        return values.astype(np.float64)
    result: FloatArray = values.to_numpy(dtype=np.float64, na_value=np.nan)
    return result
