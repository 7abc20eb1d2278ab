"""Cells of any table as numbers, text, names and ratings, and how messages quote them."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd

from srs_eval.data.reviews import BoolArray, FloatArray, IntArray
from srs_eval.errors import Violation

# What pandas, R, SQL and spreadsheets write for a missing value; "na" is a syllable
_MISSING = frozenset(
    {
        *("", "NaN", "nan", "NAN", "<NA>", "NaT", "None", "NA", "N/A", "n/a", "#N/A", "#NA"),
        *("NULL", "null", "\\N"),
    }
)
A_NAME = "a number or a text that does not stand for a missing value"
# From here on, not every whole number is a float
_EXACT_FLOAT, _LARGEST = 2.0**53, np.iinfo(np.int64).max
_MOST_DIGITS = 300  # The largest float has 309
_ROUNDED = re.compile(r"\d(?:\.(\d*))?[Ee]\+(\d+)")
_BUTTONS = {"again": 1, "hard": 2, "good": 3, "easy": 4}
_OUTCOMES = {
    **dict.fromkeys(("pass", "passed", "correct", "right", "true"), 3),
    **dict.fromkeys(("fail", "failed", "incorrect", "wrong", "false"), 1),
}
_ROWS_QUOTED, _CHARACTERS_QUOTED = 3, 60
_BRIEF = reprlib.Repr()
_BRIEF.maxother = _BRIEF.maxlong = _CHARACTERS_QUOTED


def plain(values: Any) -> pd.Series:
    """Return a column as numbers or text; everything else in it becomes missing."""
    if not isinstance(values, pd.Series):
        is_column = isinstance(values, np.ndarray) and values.ndim == 1
        values = pd.Series(values) if is_column else pd.Series([*values], dtype=object)
    column = without_categories(values)
    if column.dtype.kind in "iuf" or isinstance(column.dtype, pd.StringDtype):
        return column
    cells = column if column.dtype.kind == "O" else [None] * len(column)
    usable = [value if _is_number_or_text(value) else None for value in cells]
    return pd.Series(usable, index=column.index, dtype=object)


def _is_number_or_text(value: object) -> bool:
    if isinstance(value, bool | np.bool_):  # True is no rating and no day
        return False
    return isinstance(value, str) or (isinstance(value, Real | Decimal) and value == value)


def without_categories(values: pd.Series) -> pd.Series:
    """Return the values of a categorical column, which may be times; other columns as they are."""
    if not isinstance(values.dtype, pd.CategoricalDtype):
        return values
    categories: pd.Series = pd.Series(values.cat.categories.array)
    plain_values: pd.Series = categories.reindex(values.cat.codes).set_axis(values.index)
    return plain_values


def _numeric(column: pd.Series) -> pd.Series:
    """Parse the text of a column; what is no number becomes missing."""
    if column.dtype.kind in "iuf":
        return column
    try:
        return pd.to_numeric(column.astype(object), errors="coerce")
    except OverflowError:  # pandas does not coerce a number beyond the range of floats
        short = column.astype(str).str.len() < _MOST_DIGITS
        return pd.to_numeric(column.astype(object).where(short), errors="coerce")


def numbers(values: Any) -> FloatArray:
    """Read a column as float64, with NaN where the value is missing or not a number."""
    result: FloatArray = _numeric(plain(values)).to_numpy(np.float64, na_value=np.nan)
    return result


def whole_numbers(values: Any) -> tuple[IntArray, BoolArray]:
    """Read a column as whole numbers, int64 [n]; also return which are bad, bool [n].

    A value is bad, and 0, if it is missing, not a number, has a fraction, does not fit into 64
    bits, or is a float so large that it has lost digits.
    """
    if isinstance(values, np.ndarray) and values.dtype.kind == "i" and values.ndim == 1:
        return values.astype(np.int64), np.zeros(len(values), bool)
    column = _numeric(plain(values))
    if column.dtype.kind in "iu" and not column.hasnans:
        bad = (column > _LARGEST).to_numpy(bool)
        return column.mask(bad, 0).to_numpy(np.int64), bad
    floats = column.to_numpy(np.float64, na_value=np.nan)
    good = np.isfinite(floats) & (floats == np.floor(floats)) & (np.abs(floats) < _EXACT_FLOAT)
    return np.where(good, floats, 0).astype(np.int64), ~good


def texts(values: pd.Series) -> pd.Series:
    """Write each value of a column as text without blanks; missing for bytes and times."""
    if values.dtype.kind in "mM":
        return pd.Series(None, index=values.index, dtype="str")
    if values.dtype == object:
        values = values.map(
            lambda value: None if isinstance(value, bytes) else str(value), na_action="ignore"
        )
    stripped: pd.Series = values.astype("str").str.strip()
    return stripped.where(values.notna(), None)


def are_missing(values: pd.Series) -> BoolArray:
    """Return which cells are empty or hold a word for a missing value, bool [n]."""
    if isinstance(values.dtype, pd.StringDtype):
        words = values.str.strip()
    elif values.dtype == object:
        words = values.map(lambda value: value.strip() if isinstance(value, str) else None)
    else:
        return values.isna().to_numpy(bool)
    missing: BoolArray = (values.isna() | words.isin(_MISSING)).to_numpy(bool)
    return missing


def read_names(values: pd.Series) -> tuple[pd.Series, BoolArray]:
    """Read a column of names; return them without the blanks around them, and which are none.

    They are numbers where all names are, else text; missing where the value stands for a missing
    one, is no name, or a number that has lost digits, as 1.70004E+12 of a spreadsheet.
    """
    if values.dtype == object:
        values = values.map(lambda value: str(value) if isinstance(value, UUID) else value)
    column = plain(values)
    if column.dtype.kind == "f":
        floats = column.to_numpy(np.float64, na_value=np.nan)
        bad = ~(np.abs(floats) < _EXACT_FLOAT) | (floats != np.floor(floats))
        return column.mask(bad), bad
    if column.dtype.kind in "iu" and not (column > _LARGEST).any():
        return column, column.isna().to_numpy(bool)
    codes, distinct = pd.factorize(column)  # one of each is enough
    words = [str(value).strip() for value in distinct]
    present = [None if word in _MISSING or is_rounded(word) else word for word in words]
    names = pd.Series([*present, None], dtype=object).iloc[codes].set_axis(column.index)
    return names, names.isna().to_numpy(bool)


def is_rounded(word: object) -> bool:
    """Return whether a text is a number with more digits than it shows, such as 1.7E+12."""
    match = _ROUNDED.fullmatch(word.strip()) if isinstance(word, str) else None
    return match is not None and len(match[1] or "") < int(match[2])


def identities(names: pd.Series) -> pd.Series:
    """Turn the names that `read_names` returns into numbers; whole numbers stay what they are.

    Text is numbered 0, 1, 2, … in order of first appearance, unless all of it is whole numbers in
    their plain form. Missing values stay missing.
    """
    if names.dtype.kind in "iuf":
        return names
    present = names.dropna().astype("str")
    parsed = _numeric(present)
    if parsed.dtype == np.int64 and bool((parsed.astype("str") == present).all()):
        return parsed.astype("Int64").reindex(names.index)
    codes, _ = pd.factorize(names)
    return pd.Series(codes, index=names.index, dtype="Int64").mask(codes < 0)


def folded(word: str) -> str:
    """Write a word as it is compared: without capital letters, blanks around it, and ``.0``."""
    return word.strip().casefold().removesuffix(".0")


def read_ratings(
    values: pd.Series, words: Mapping[Any, int] | None = None, *, outcomes: bool = False
) -> tuple[FloatArray, str]:
    """Read a column of ratings, or of outcomes, which become Good and Again.

    Return 1 to 4, or something else where the value is none, and what was expected. Values are
    numbers or text; capital letters and blanks around a word do not count. Ratings of `words` stand
    in place of what is known by itself; of `outcomes`, 1 and 0 are true and false.
    """
    if words:
        ratings_of, expected = words, f"a value that data.ratings has: {', '.join(map(str, words))}"
    elif outcomes:
        ratings_of, expected = {**_OUTCOMES, 1: 3, 0: 1}, "true or false, 1 or 0, pass or fail"
    else:
        ratings_of = _BUTTONS | _OUTCOMES
        expected = f"1 (Again) to 4 (Easy), or {', '.join(_BUTTONS)}, pass, fail, true or false"
        if values.dtype.kind in "iuf":
            return numbers(values), expected
    by_word = {folded(str(word)): rating for word, rating in ratings_of.items()}
    codes, distinct = pd.factorize(texts(values))  # one of each is enough
    ratings = np.array([*(by_word.get(folded(word), np.nan) for word in distinct), np.nan])[codes]
    if not (words or outcomes):
        ratings = np.where(np.isnan(ratings), numbers(values), ratings)
    return ratings, expected


def quoted(value: Any) -> str:
    """Write a value the way a message quotes it, only the beginning if it is long."""
    if isinstance(value, pd.Timestamp):
        return str(value)
    # No more than is shown: the text of a large array or list takes long to write.
    text = value if isinstance(value, str) else _BRIEF.repr(value)
    if len(text) <= _CHARACTERS_QUOTED:
        return repr(text) if isinstance(value, str) else text
    head = text[:_CHARACTERS_QUOTED]
    return f"{head!r}… ({len(text):,} characters)" if isinstance(value, str) else f"{head}…"


def listed(names: Sequence[object], most: int = 5) -> str:
    """List the first names and count the others."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + more


def violations(
    name: str,
    values: Any,
    bad: BoolArray,
    expected: str,
    row_name: Callable[[int], str],
    kind: str = "wrong_type",
) -> list[Violation]:
    """Describe the values of a column that break a rule: none, or one violation of them all.

    Its kind is `kind`, or ``missing`` if all of these values are missing.
    """
    rows = np.flatnonzero(bad)
    if not len(rows):
        return []
    column = values if isinstance(values, pd.Series) else pd.Series(list(values), dtype=object)
    if column.dtype.kind == "M":  # not as a Timestamp: those of far years cannot be written
        naive = column if column.dt.tz is None else column.dt.tz_convert(None)
        column = pd.Series(naive.to_numpy().astype(str), dtype=object).mask(naive.isna(), None)
    column = column.iloc[rows]
    places = [row_name(int(row)) for row in rows[:_ROWS_QUOTED]]
    cells = [
        "nothing" if empty else quoted(value.item() if isinstance(value, np.generic) else value)
        for value, empty in zip(column.iloc[:_ROWS_QUOTED], column.isna(), strict=False)
    ]
    said = ", ".join(f"{place} has {cell}" for place, cell in zip(places, cells, strict=True))
    further = len(rows) - _ROWS_QUOTED
    more = f" and {further:,} further row{'s' * (further > 1)}" if further > 0 else ""
    kind = "missing" if column.isna().all() else kind
    return [Violation(f"{name}: {said}{more}; expected {expected}", kind, name, places)]
