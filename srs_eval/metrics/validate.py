"""Predictions made of columns in any container, and what is wrong with them in one error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from srs_eval.data.reviews import BoolArray
from srs_eval.errors import ScoreError
from srs_eval.metrics.predictions import PREDICTION_COLUMNS, Predictions

Columns = dict[str, NDArray[Any]]
# What elapsed days, number of reviews and lapses can be.
LOWEST = {"elapsed_days": 0, "nth_review": 1, "lapses": 0}
LARGEST = 1e9
HINT = "Probabilities of recall lie in [0, 1]; outcomes are 0 or 1 (False or True)."


def predictions_of(**columns: ArrayLike | None) -> Predictions:
    """Build the predictions of one unnamed user from columns in any container, and check them.

    ``p`` and ``recalled`` are needed, others are those of `Predictions`.

    >>> predictions_of(p=[0.9, 0.4], recalled=[1, 0]).recalled
    array([ True, False])
    """
    return from_columns(as_columns(columns))


def as_columns(columns: Mapping[str, ArrayLike | None]) -> Columns:
    """Convert columns to arrays of numbers; the precision of predictions is kept."""
    arrays = {name: as_numbers(name, of) for name, of in columns.items() if of is not None}
    p = arrays["p"]
    return {**arrays, "p": p if p.dtype.kind == "f" else p.astype(np.float64)}


def from_columns(columns: Columns) -> Predictions:
    """Build checked predictions of one unnamed user from arrays."""
    p, recalled = columns["p"], columns["recalled"]
    zeros, rows = np.zeros(p.shape, np.int64), np.arange(p.size).reshape(p.shape)
    unknown: dict[str, Any] = {"user": zeros, "fold": zeros, "card": zeros, "row": rows}
    unchecked = Predictions(users=("",), **{**unknown, **columns})
    check_predictions(unchecked)
    return replace(unchecked, recalled=recalled.astype(np.bool_, copy=False))


def check_predictions(predictions: Predictions) -> None:
    """Raise an error that lists every problem of predictions that cannot be scored."""
    columns = {name: getattr(predictions, name) for name in ("user", *PREDICTION_COLUMNS)}
    present = {name: np.asarray(column) for name, column in columns.items() if column is not None}
    if problems := [*_problems(present)]:
        listed = "".join(f"\n  - {problem}" for problem in problems)
        raise ScoreError(f"these predictions cannot be scored:{listed}\n  {HINT}")


def as_numbers(name: str, values: ArrayLike) -> NDArray[Any]:
    """Convert numbers in any common container to an array; None becomes NaN."""
    try:
        array = np.asarray(values)
        if isinstance(values, np.ma.MaskedArray):
            array = np.where(np.ma.getmaskarray(values), np.nan, array)
        if array.dtype == object:
            array = np.array([np.nan if is_missing(value) else value for value in array.ravel()])
            array = array.reshape(np.shape(values)).astype(np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ScoreError(f"{name} cannot be read as numbers: {error}. {HINT}") from error
    if array.dtype.kind not in "biuf":
        raise ScoreError(f"{name} cannot be read as numbers: it is {array.dtype}. {HINT}")
    return array


def is_missing(value: object) -> bool:
    """Whether a value is None, NaN, or the missing value of pandas."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA is neither equal nor unequal to itself
        return True


def _problems(columns: Columns) -> Iterator[str]:
    """Go through what is wrong with shapes, predictions, outcomes and facts."""
    p, recalled = columns["p"], columns["recalled"]
    if p.ndim != 1:
        yield f"p has shape {p.shape}, expected one dimension"
    for name, column in columns.items():
        if column.shape != p.shape:
            yield f"{name} has shape {column.shape}, but p has {p.shape}"
    # One pass for the common case: NaN makes both comparisons false.
    if p.size and not (p.min() >= 0 and p.max() <= 1):
        missing, outside = np.isnan(p), (p < 0) | (p > 1)
        if missing.any():
            yield f"p is NaN at {_where(missing)}"
        if outside.any():
            yield f"p is outside [0, 1] at {_where(outside)}: {p[outside].flat[0]}"
    wrong = (recalled != 0) & (recalled != 1)
    if wrong.any():
        yield f"recalled is neither 0 nor 1 at {_where(wrong)}: {recalled[wrong].flat[0]}"
    for name, lowest in LOWEST.items():
        if name not in columns or not columns[name].size:
            continue
        column = columns[name]
        if not column.min() >= lowest:
            yield f"{name} must be at least {lowest} everywhere, found {column.min()}"
        elif not column.max() < LARGEST:
            yield f"{name} must be less than {LARGEST:g} everywhere, found {column.max()}"


def _where(wrong: BoolArray) -> str:
    """Format the first position, and the number of others."""
    rows = np.flatnonzero(wrong)
    return f"position {rows[0]}" + (f" and {len(rows) - 1} more" if len(rows) > 1 else "")
