"""Validation of predictions: shapes, NaN and ranges, with all problems in one error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from srs_eval.errors import ScoreError
from srs_eval.nouns import PREDICTION_COLUMNS, BoolArray, FloatArray, Predictions

# What elapsed days, number of reviews and lapses can be.
LOWEST = {"elapsed_days": 0, "nth_review": 1, "lapses": 0}
LARGEST = 1e9
HINT = "Probabilities of recall lie in [0, 1]; outcomes are 0 or 1 (False or True)."


def paired(p: ArrayLike, recalled: ArrayLike) -> tuple[FloatArray, BoolArray]:
    """Convert predictions, of which the precision is kept, and outcomes to arrays to be scored.

    >>> paired([0.9, 0.4], [1, 0])
    (array([0.9, 0.4]), array([ True, False]))
    """
    probability = as_floats("p", p)
    outcome = as_numbers("recalled", recalled)
    problems = [*_shape_problems(probability, {"recalled": outcome})]
    problems += [*_probability_problems(probability), *_outcome_problems(outcome)]
    refuse(problems)
    return probability, outcome.astype(np.bool_, copy=False)


def check_predictions(predictions: Predictions) -> None:
    """Raise an error that lists every problem of predictions that cannot be scored."""
    columns = {name: getattr(predictions, name) for name in ("user", *PREDICTION_COLUMNS)}
    del columns["p"]
    present = {name: column for name, column in columns.items() if column is not None}
    problems = [*_shape_problems(predictions.p, present)]
    problems += [
        *_probability_problems(predictions.p),
        *_outcome_problems(np.asarray(predictions.recalled)),
        *_fact_problems(present),
    ]
    refuse(problems)


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


def as_floats(name: str, values: ArrayLike) -> FloatArray:
    """Convert numbers to an array of floats, keeping the precision of floats."""
    array = as_numbers(name, values)
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def refuse(problems: list[str]) -> None:
    """Raise `ScoreError` with all problems, if there are any."""
    if problems:
        listed = "".join(f"\n  - {problem}" for problem in problems)
        raise ScoreError(f"these predictions cannot be scored:{listed}\n  {HINT}")


def _shape_problems(p: NDArray[Any], columns: Mapping[str, NDArray[Any]]) -> Iterator[str]:
    """Yield the columns that do not have one value per prediction."""
    if p.ndim != 1:
        yield f"p has shape {p.shape}, expected one dimension"
    for name, column in columns.items():
        if column.shape != p.shape:
            yield f"{name} has shape {column.shape}, but p has {p.shape}"


def _probability_problems(p: FloatArray) -> Iterator[str]:
    """Yield where predictions are NaN or outside [0, 1]."""
    # One pass for the common case: NaN makes both comparisons false.
    if p.size == 0 or (p.min() >= 0 and p.max() <= 1):
        return
    missing = np.isnan(p)
    if missing.any():
        yield f"p is NaN at {_where(missing)}"
    outside = (p < 0) | (p > 1)
    if outside.any():
        yield f"p is outside [0, 1] at {_where(outside)}: {p[outside].flat[0]}"


def _outcome_problems(recalled: NDArray[Any]) -> Iterator[str]:
    """Yield where outcomes are neither 0 nor 1."""
    if recalled.dtype.kind == "b":
        return
    wrong = (recalled != 0) & (recalled != 1)
    if wrong.any():
        yield f"recalled is neither 0 nor 1 at {_where(wrong)}: {recalled[wrong].flat[0]}"


def _fact_problems(columns: Mapping[str, NDArray[Any]]) -> Iterator[str]:
    """Yield columns of the reviews with impossible values."""
    for name, lowest in LOWEST.items():
        column = columns.get(name)
        if column is None or not column.size:
            continue
        if not column.min() >= lowest:
            yield f"{name} must be at least {lowest} everywhere, found {column.min()}"
        elif not column.max() < LARGEST:
            yield f"{name} must be less than {LARGEST:g} everywhere, found {column.max()}"


def _where(wrong: BoolArray) -> str:
    """Format the first position, and the number of others."""
    rows = np.flatnonzero(wrong)
    return f"position {rows[0]}" + (f" and {len(rows) - 1} more" if len(rows) > 1 else "")
