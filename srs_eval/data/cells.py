"""Cells of any table as numbers, times, text, names and ratings, and how messages quote them."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from numbers import Real
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa

from srs_eval.data.reviews import BoolArray, FloatArray, IntArray

# What pandas, R, SQL and spreadsheets write for a missing value; "na" is a syllable
_MISSING = frozenset(
    {
        *("", "NaN", "nan", "NAN", "<NA>", "NaT", "None", "NA", "N/A", "n/a", "#N/A", "#NA"),
        *("NULL", "null", "\\N", "__HIVE_DEFAULT_PARTITION__"),
    }
)
# From here on, not every whole number is a float
_EXACT_FLOAT, _LARGEST = 2.0**53, np.iinfo(np.int64).max
_MOST_DIGITS = 300  # The largest float has 309
_ROUNDED = re.compile(r"-?\d(?:\.(\d*))?[Ee]\+(\d+)")
_WORDS = {
    **{str(rating): rating for rating in (1, 2, 3, 4)},
    **{"again": 1, "hard": 2, "good": 3, "easy": 4},
    **dict.fromkeys(("pass", "passed", "correct", "right", "true"), 3),
    **dict.fromkeys(("fail", "failed", "incorrect", "wrong", "false"), 1),
}
_CHARACTERS_QUOTED = 60
_BRIEF = reprlib.Repr()
_BRIEF.maxstring = _BRIEF.maxother = _BRIEF.maxlong = _CHARACTERS_QUOTED
quoted = _BRIEF.repr  # a value the way a message quotes it


def column_of(values: Any) -> pd.Series:
    """Return values as a column of numbers, of times, or of text without blanks around it.

    What stands for a missing value is missing. A column with cells that are no number or text
    stays one of objects. No whole number becomes a float on the way.
    """
    column = pd.Series([*values] if getattr(values, "ndim", 1) > 1 else values)
    if isinstance(column.dtype, pd.ArrowDtype):
        cells = pa.array(column).to_pandas(integer_object_nulls=True)
        column = cells.set_axis(column.index)
    if isinstance(column.dtype, pd.CategoricalDtype):
        categories = pd.Series(column.cat.categories.array)
        whole = categories.dtype.kind in "iu"
        categories = categories.astype(object) if whole else categories
        column = categories.reindex(column.cat.codes).set_axis(column.index)
    if column.dtype.kind in "iufM":
        return column
    if not isinstance(column.dtype, pd.StringDtype):
        column = column.astype(object).map(_text, na_action="ignore")
        if pd.api.types.infer_dtype(column, skipna=True) not in ("string", "empty"):
            return column
    text = column.astype("str").str.strip()
    return text.mask(text.isin(_MISSING))


def as_whole(column: pd.Series) -> pd.Series:
    """Return text as whole numbers if all of it is some, in their plain form."""
    if isinstance(column.dtype, pd.StringDtype):
        text = pa.array(column)
        with suppress(pa.ArrowInvalid):
            whole = text.cast(pa.int64())
            if whole.cast(text.type).equals(text):
                exact = {pa.int64(): pd.Int64Dtype()}.get if whole.null_count else None
                column = whole.to_pandas(types_mapper=exact).set_axis(column.index)
    return column


def _text(cell: Any) -> Any:
    """Write a number or text as text; neither True nor a day is a number."""
    if isinstance(cell, float) and abs(cell) >= _EXACT_FLOAT:
        return f"{cell:e}"  # of which digits may be lost
    if isinstance(cell, int) and cell.bit_length() > 10_000:  # which Python does not write out
        return hex(cell)
    if isinstance(cell, bool) or not isinstance(cell, str | Real | Decimal | UUID):
        return cell
    text = str(cell).strip()
    return None if text in _MISSING else text


def numbers(column: pd.Series) -> FloatArray:
    """Read a column as float64, with NaN where the value is missing or not a number."""
    if column.dtype.kind not in "iuf":
        if not isinstance(column.dtype, pd.StringDtype):
            return np.full(len(column), np.nan)
        with suppress(pa.ArrowInvalid):
            return np.array(pa.array(column).cast(pa.float64()))
        # pandas does not coerce a number beyond the range of floats.
        short = column.astype(object).where(column.str.len() < _MOST_DIGITS)
        column = pd.to_numeric(short, errors="coerce")
    result: FloatArray = column.to_numpy(np.float64, na_value=np.nan)
    return result


def whole_numbers(column: pd.Series) -> tuple[IntArray, BoolArray]:
    """Read a column as whole numbers, int64 [n]; also return which are bad, bool [n].

    A value is bad, and 0, if it is missing, not a number, has a fraction, does not fit into 64
    bits, or is a float so large that it has lost digits.
    """
    if column.dtype.kind in "iu" and not column.hasnans:
        bad = (column > _LARGEST).to_numpy(bool)
        return column.mask(bad, 0).to_numpy(np.int64), bad
    floats = numbers(column)
    good = (floats == np.floor(floats)) & (np.abs(floats) < _EXACT_FLOAT)
    return np.where(good, floats, 0).astype(np.int64), ~good


def texts(column: pd.Series) -> pd.Series:
    """Write the cells of a column as text, also those that are neither numbers nor text."""
    is_text = isinstance(column.dtype, pd.StringDtype)
    return column if is_text else column.map(str, na_action="ignore").astype("str")


def read_names(column: pd.Series) -> tuple[pd.Series, BoolArray]:
    """Read a column of names; return them, missing where a cell has none, and which have none.

    They are whole numbers where all names are some, else text. A number that has lost digits is no
    name, as 1.70004E+12 of a spreadsheet.
    """
    column = as_whole(column)
    if column.dtype.kind == "f":
        whole, bad = whole_numbers(column)
        return pd.Series(whole, column.index, "Int64").mask(bad), bad
    if column.dtype.kind in "iu":
        is_large = bool((column > _LARGEST).any())
        return column.astype("str") if is_large else column, column.isna().to_numpy(bool)
    if not isinstance(column.dtype, pd.StringDtype):
        return pd.Series(None, column.index, "str"), np.ones(len(column), bool)
    codes, distinct = pd.factorize(column)  # one of each is enough
    bad = np.array([*map(is_rounded, distinct), True], bool)[codes]
    return column.mask(bad), bad


def is_rounded(word: object) -> bool:
    """Return whether a text is a number with more digits than it shows, such as 1.7E+12."""
    match = _ROUNDED.fullmatch(word) if isinstance(word, str) else None
    return match is not None and len(match[1] or "") < int(match[2])


def identities(names: pd.Series) -> pd.Series:
    """Turn the names that `read_names` returns into numbers; whole numbers stay what they are.

    Text is numbered 0, 1, 2, … in order of first appearance. Missing values stay missing.
    """
    if names.dtype.kind in "iu":
        return names
    codes, _ = pd.factorize(names)
    return pd.Series(codes, names.index, "Int64").mask(codes < 0)


def folded(word: object) -> str:
    """Write a word as it is compared: without capital letters, blanks around it, and ``.0``."""
    return re.sub(r"\.0+$", "", str(word).strip().casefold())


def read_ratings(column: pd.Series, words: Mapping[str, int] | None = None) -> FloatArray:
    """Read a column of ratings as 1 to 4, NaN where the value is none.

    Values are numbers or words, as `folded` writes them; `words` stand in place of the usual ones.
    """
    if column.dtype.kind == "M":
        return np.full(len(column), np.nan)
    codes, distinct = pd.factorize(column if column.dtype.kind in "iuf" else texts(column))
    ratings = [(words or _WORDS).get(folded(word), np.nan) for word in distinct]  # one of each
    return np.array([*ratings, np.nan])[codes]


def listed(names: Sequence[object], most: int = 5) -> str:
    """List the first names and count the others."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + more
