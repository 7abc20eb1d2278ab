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
import pyarrow as pa

from srs_eval.data.reviews import BoolArray, FloatArray, IntArray
from srs_eval.errors import ReviewLogError, Violation

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
_WORDS = {
    **_BUTTONS,
    **dict.fromkeys(("pass", "passed", "correct", "right", "true"), 3),
    **dict.fromkeys(("fail", "failed", "incorrect", "wrong", "false"), 1),
}
_ROWS_QUOTED, _CHARACTERS_QUOTED, _LONGEST_NAME = 3, 60, 200
_BRIEF = reprlib.Repr()
_BRIEF.maxother = _BRIEF.maxlong = _CHARACTERS_QUOTED


def column_of(values: Any) -> pd.Series:
    """Return values as a column of numbers, of times or of text; other cells stay what they are."""
    one_dimension = isinstance(values, pd.Series) or np.ndim(values) == 1
    column = pd.Series(values if one_dimension else [*map(str, values)])
    if isinstance(column.dtype, pd.ArrowDtype):
        column = pd.Series(pa.array(column).to_pandas(), column.index)
    if isinstance(column.dtype, pd.CategoricalDtype):
        categories = pd.Series(column.cat.categories.array)
        column = categories.reindex(column.cat.codes).set_axis(column.index)
    if column.dtype.kind in "iufM" or isinstance(column.dtype, pd.StringDtype):
        return column
    cells = column.astype(object).map(_text, na_action="ignore")
    return cells.astype("str") if cells.map(type).isin([str, float, type(None)]).all() else cells


def _text(cell: Any) -> Any:
    """Write a number or text as text; neither True nor a day is a number."""
    is_plain = isinstance(cell, str | Real | Decimal | UUID) and not isinstance(cell, bool)
    return str(cell) if is_plain else cell


def _plain(column: pd.Series) -> pd.Series:
    """Return a column of numbers or text, in which all other cells are missing."""
    if column.dtype.kind in "iuf" or isinstance(column.dtype, pd.StringDtype):
        return column
    cells = column if column.dtype == object else [None] * len(column)
    return pd.Series([c if isinstance(c, str) else None for c in cells], column.index, object)


def _numeric(values: pd.Series) -> pd.Series:
    """Parse the text of a column; what is no number becomes missing."""
    column = _plain(values)
    if column.dtype.kind in "iuf":
        return column
    # pandas does not coerce a number beyond the range of floats.
    short = column.astype(object).where(column.str.len() < _MOST_DIGITS)
    return pd.to_numeric(short, errors="coerce")


def numbers(column: pd.Series) -> FloatArray:
    """Read a column as float64, with NaN where the value is missing or not a number."""
    result: FloatArray = _numeric(column).to_numpy(np.float64, na_value=np.nan)
    return result


def whole_numbers(values: pd.Series) -> tuple[IntArray, BoolArray]:
    """Read a column as whole numbers, int64 [n]; also return which are bad, bool [n].

    A value is bad, and 0, if it is missing, not a number, has a fraction, does not fit into 64
    bits, or is a float so large that it has lost digits.
    """
    column = _numeric(values)
    if column.dtype.kind in "iu" and not column.hasnans:
        bad = (column > _LARGEST).to_numpy(bool)
        return column.mask(bad, 0).to_numpy(np.int64), bad
    floats = column.to_numpy(np.float64, na_value=np.nan)
    good = (floats == np.floor(floats)) & (np.abs(floats) < _EXACT_FLOAT)
    return np.where(good, floats, 0).astype(np.int64), ~good


def texts(column: pd.Series) -> pd.Series:
    """Write each value of a column as text without blanks; missing for bytes and times."""
    if column.dtype.kind == "M":
        return pd.Series(None, column.index, "str")
    if column.dtype == object:
        column = column.map(lambda cell: None if isinstance(cell, bytes) else str(cell), "ignore")
    stripped: pd.Series = column.astype("str").str.strip()
    return stripped.where(column.notna(), None)


def are_missing(column: pd.Series) -> BoolArray:
    """Return which cells are empty or hold a word for a missing value, bool [n]."""
    is_text = isinstance(column.dtype, pd.StringDtype)
    words = column.str.strip().isin(_MISSING) if is_text else False
    result: BoolArray = (column.isna() | words).to_numpy(bool)
    return result


def read_names(values: pd.Series) -> tuple[pd.Series, BoolArray]:
    """Read a column of names; return them without the blanks around them, and which are none.

    They are numbers where all names are, else text; missing where the value stands for a missing
    one, is no name, or a number that has lost digits, as 1.70004E+12 of a spreadsheet.
    """
    column = _plain(values)
    if column.dtype.kind in "iu" and not (column > _LARGEST).any():
        return column, column.isna().to_numpy(bool)
    if column.dtype.kind == "f":
        _, bad = whole_numbers(column)
        return column.mask(bad), bad
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


def folded(word: object) -> str:
    """Write a word as it is compared: without capital letters, blanks around it, and ``.0``."""
    return str(word).strip().casefold().removesuffix(".0")


def read_ratings(
    column: pd.Series, words: Mapping[Any, int] | None = None
) -> tuple[FloatArray, str]:
    """Read a column of ratings as 1 to 4, or as something else where the value is none.

    Also return what was expected. Values are numbers or words; capital letters and blanks around
    a word do not count. Ratings of `words` stand in place of what is known by itself.
    """
    expected = f"1 (Again) to 4 (Easy), or {', '.join(_BUTTONS)}, pass, fail, true or false"
    if words:
        expected = f"a value that data.ratings has: {', '.join(map(str, words))}"
    elif column.dtype.kind in "iuf":
        return numbers(column), expected
    by_word = {folded(word): rating for word, rating in (words or _WORDS).items()}
    codes, distinct = pd.factorize(texts(column))  # one of each is enough
    known = np.array([by_word.get(folded(word), np.nan) for word in distinct])
    if not words:
        known = np.where(np.isnan(known), numbers(column_of(distinct)), known)
    return np.array([*known, np.nan])[codes], expected


def quoted(value: Any) -> str:
    """Write a value the way a message quotes it, only the beginning if it is long."""
    # No more than is shown: the text of a large array or list takes long to write.
    text = value if isinstance(value, str) else _BRIEF.repr(value)
    head = text[:_CHARACTERS_QUOTED]
    head = repr(head) if isinstance(value, str) else head
    if len(text) <= _CHARACTERS_QUOTED:
        return head
    return f"{head}… ({len(text):,} characters)" if isinstance(value, str) else f"{head}…"


def listed(names: Sequence[object], most: int = 5) -> str:
    """List the first names and count the others."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + more


def violations(
    name: str,
    column: pd.Series,
    bad: BoolArray,
    expected: str,
    row_name: Callable[[int], str],
    kind: str = "wrong_type",
) -> list[Violation]:
    """Describe the values of a column that break a rule: none, or one violation of them all."""
    rows = np.flatnonzero(bad)
    if not len(rows):
        return []
    column = column.iloc[rows]
    missing, cells = column.isna().to_numpy(bool), column.iloc[:_ROWS_QUOTED]
    if column.dtype.kind == "M":  # not as Timestamp: those of far years cannot be written
        naive = cells if cells.dt.tz is None else cells.dt.tz_convert(None)
        cells = pd.Series(naive.to_numpy().astype(str))
    said = [
        "nothing" if is_missing else quoted(value)
        for value, is_missing in zip(cells.tolist(), missing, strict=False)
    ]
    places = [row_name(int(row)) for row in rows[:_ROWS_QUOTED]]
    each = ", ".join(f"{place} has {cell}" for place, cell in zip(places, said, strict=True))
    further = len(rows) - _ROWS_QUOTED
    more = f" and {further:,} further row{'s' * (further > 1)}" if further > 0 else ""
    kind = "missing" if missing.all() else kind
    return [Violation(f"{name}: {each}{more}; expected {expected}", kind, name, places)]


def users_of(column: pd.Series, source: str, rows: IntArray) -> tuple[IntArray, list[int | str]]:
    """Return the number of each row's user, and the users, as numbers where they are some."""
    column = column_of(column)
    names, bad = read_names(column)
    codes, distinct = pd.factorize(names)
    texts = [str(int(name) if isinstance(name, float) else name) for name in distinct]
    is_odd = [len(text) > _LONGEST_NAME or not text.isprintable() for text in texts]
    unusable = bad | np.array([*is_odd, False], bool)[codes]
    if unusable.any():
        expected = f"a user: {A_NAME}, at most {_LONGEST_NAME} printable characters"
        name, place = str(column.name), lambda row: f"row {rows[row] + 1}"
        hint = "Leave rows without one out, or give what is really called so another name."
        raise ReviewLogError(source, violations(name, column, unusable, expected, place), hint)
    return codes, [
        int(text) if text.isdecimal() and str(int(text)) == text else text for text in texts
    ]
