"""Names of cards and users, as a table writes them."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd

from srs_eval.data.columns import EXACT_FLOAT, cut, numbers_in, scalars, without_categories
from srs_eval.nouns import BoolArray

EXPECTED = "a number or a text that does not stand for a missing value"
RENAME = "Leave rows without one out of the file, or give what is really called so another name."

# How pandas, R, SQL and spreadsheets write a missing value. Other spellings are left alone:
# "na" is a syllable.
_PANDAS = ("NaN", "nan", "NAN", "<NA>", "NaT", "None")
_MISSING = frozenset((*_PANDAS, "NA", "N/A", "n/a", "#N/A", "#NA", "NULL", "null", "\\N"))
_NAMES_QUOTED = 3
_LARGEST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Names:
    """A column of names."""

    # [n]: numbers where all names are numbers, else text without blanks around it; missing where
    # `bad`.
    values: pd.Series
    bad: BoolArray  # [n]: the value is missing, stands for a missing value, or is no name


def read_names(values: pd.Series) -> Names:
    """Read a column of names, without the blanks around them.

    >>> names = read_names(pd.Series(["b ", " b", "NaN", None]))
    >>> names.values.tolist()[:2], names.bad.tolist()
    (['b', 'b'], [False, False, True, True])
    """
    values = without_categories(values)
    if values.dtype.kind == "f":
        floats = values.to_numpy(np.float64, na_value=np.nan)
        # A larger one has lost digits: two names may have become one.
        bad = ~(np.abs(floats) < EXACT_FLOAT) | (floats != np.floor(floats))
        return Names(values.mask(bad), bad)
    if values.dtype.kind in "iu" and not (values > _LARGEST).any():
        return Names(values, values.isna().to_numpy(bool))
    if isinstance(values.dtype, pd.StringDtype):
        codes, different = pd.factorize(values)
        if len(different) < len(values):  # one of each is enough
            names = read_names(pd.Series(different))
            bad = np.append(names.bad, np.True_)[codes]
            return Names(names.values.astype(object).reindex(codes).set_axis(values.index), bad)
    if values.dtype == object:
        values = values.map(lambda value: str(value) if isinstance(value, UUID) else value)
    kept = pd.Series(scalars(values), index=values.index, dtype=object)
    text = kept.where(kept.isna(), kept.astype("str").str.strip())
    distinct = {
        name: not isinstance(name, str) or not name or name in _MISSING for name in text.unique()
    }
    bad = text.map(distinct).to_numpy(bool)
    return Names(text.mask(bad, None), bad)


def identities(names: pd.Series) -> pd.Series:
    """Turn the names that `read_names` returns into numbers; whole numbers stay what they are.

    Text is numbered 0, 1, 2, … in order of first appearance, unless all of it is whole numbers in
    their plain form. Missing values stay missing.

    >>> identities(pd.Series(["b", "a", "b"])).tolist()
    [0, 1, 0]
    >>> identities(pd.Series(["30", "4"])).tolist()
    [30, 4]
    """
    if names.dtype.kind in "iuf":
        return names
    present = names.dropna().astype("str")
    parsed = numbers_in(present)
    if parsed.dtype == np.int64 and bool((parsed.astype("str") == present).all()):
        return parsed.astype("Int64").reindex(names.index)
    codes, _ = pd.factorize(names)
    return pd.Series(codes, index=names.index, dtype="Int64").mask(codes < 0)


def nearly_alike(noun: str, names: pd.Series) -> str:
    """Describe names that differ only in case or spelling; "" if there are none.

    >>> nearly_alike("cards", pd.Series(["Rose", "rose", "oak"]))
    "cards: 2 of 3 names differ only in case or spelling, such as 'Rose' and 'rose'; kept apart"
    """
    if names.dtype.kind in "iuf":
        return ""
    distinct: Sequence[Any] = names.dropna().unique().tolist()
    groups: dict[str, list[str]] = {}
    for name in distinct:
        groups.setdefault(folded(str(name)), []).append(str(name))
    alike = [group for group in groups.values() if len(group) > 1]
    if not alike:
        return ""
    quoted = " and ".join(cut(name) for name in alike[0][:_NAMES_QUOTED])
    return (
        f"{noun}: {sum(map(len, alike)):,} of {len(distinct):,} names differ only in case or "
        f"spelling, such as {quoted}; kept apart"
    )


def folded(name: str) -> str:
    """Write a name without case, and each character in one way."""
    plain = name if name.isascii() else unicodedata.normalize("NFKC", name)
    return plain.casefold().removesuffix(".0")
