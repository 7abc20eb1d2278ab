"""Ratings, written as numbers or as words."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from srs_eval.data.columns import cut, numbers, texts
from srs_eval.nouns import BoolArray

_BUTTONS = {"again": 1, "hard": 2, "good": 3, "easy": 4}
_RIGHT = ("pass", "passed", "correct", "right", "true")
_WRONG = ("fail", "failed", "incorrect", "wrong", "false")
_OUTCOMES = dict.fromkeys(_RIGHT, 3) | dict.fromkeys(_WRONG, 1)
_LISTED = "again, hard, good, easy, pass, fail, correct, wrong, true or false"
_VALUES_QUOTED = 8


@dataclass(frozen=True, slots=True)
class Ratings:
    """A column of ratings."""

    values: pd.Series  # [n]: 1 to 4; 1 where `bad`
    bad: BoolArray  # [n]: the value is not a rating
    expected: str  # description of a rating
    hint: str  # how to map other values; "" if all are ratings


def read_ratings(
    values: pd.Series, words: Mapping[Any, int] | None = None, *, outcomes: bool = False
) -> Ratings:
    """Read a column of ratings, or of outcomes, which become Good and Again.

    Values are numbers or text; capital letters and blanks around a word do not count. Ratings of
    `words` stand in place of what is known by itself. With `outcomes`, 1 and 0 are true and false,
    and only words for these two are known.

    >>> read_ratings(pd.Series(["Again", "pass", "4", None])).values.tolist()
    [1, 3, 4, 1]
    >>> read_ratings(pd.Series([0, 2, 5]), {0: 1, 2: 2, 5: 4}).values.tolist()
    [1, 2, 4]
    """
    if words:
        known, expected = words, f"a value that data.ratings has: {', '.join(map(str, words))}"
    elif outcomes:
        known = {**_OUTCOMES, "1": 3, "0": 1}
        expected = "true or false, or 1 or 0, or pass or fail, correct or wrong"
    else:
        known, expected = _BUTTONS | _OUTCOMES, f"1 (Again) to 4 (Easy), or {_LISTED}"
    is_numeric = not (words or outcomes)
    ratings = numbers(values) if is_numeric else np.full(len(values), np.nan)
    if not (is_numeric and values.dtype.kind in "iuf"):
        by_word = {_folded(str(word)): rating for word, rating in known.items()}
        mapped = texts(values).map(_folded, na_action="ignore").map(by_word).to_numpy(np.float64)
        ratings = np.where(np.isnan(mapped), ratings, mapped)
    bad = ~np.isin(ratings, (1, 2, 3, 4))
    plain = pd.Series(np.where(bad, 1, ratings).astype(np.int64), values.index)
    return Ratings(plain, bad, expected, _advice(values, bad))


def contradictions(words: Mapping[Any, int]) -> list[str]:
    """Describe words that are read alike and have different ratings.

    >>> contradictions({"Pass": 3, "pass": 1, 0: 1})
    ['Pass: 3, pass: 1']
    """
    groups: dict[str, list[tuple[Any, int]]] = {}
    for word, rating in words.items():
        groups.setdefault(_folded(str(word)), []).append((word, rating))
    return [
        ", ".join(f"{word}: {rating}" for word, rating in group)
        for group in groups.values()
        if len({rating for _, rating in group}) > 1
    ]


def _folded(word: str) -> str:
    """Write a value as it is compared."""
    return word.strip().casefold().removesuffix(".0")


def _advice(values: pd.Series, bad: BoolArray) -> str:
    """Return what to do about values that are no ratings."""
    if not bad.any():
        return ""
    if texts(values[bad]).isna().all():
        return "Leave out the rows without one."
    present = texts(values).dropna().unique()
    pairs = ", ".join(f"{_key(text.removesuffix('.0'))}: N" for text in present[:_VALUES_QUOTED])
    more = ", …" if len(present) > _VALUES_QUOTED else ""
    word = shlex.quote(f"data.ratings={{{pairs}{more}}}")
    return f"Map the values as {word}, each N from 1 (Again) to 4 (Easy)."


def _key(text: str) -> str:
    """Write a value as a key of a mapping on the command line."""
    if cut(text) != repr(text):
        return cut(text).replace("'", "")  # too long to be typed
    return text if re.fullmatch(r"-?\w[\w ./*+-]*", text) else json.dumps(text, ensure_ascii=False)
