"""Predictions of scored reviews as columns, and what is wrong with them in one error."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from srs_eval.data.reviews import BoolArray, FloatArray, IntArray, User, columns_of
from srs_eval.errors import ScoreError

# What elapsed days, number of reviews and lapses can be.
LOWEST = {"elapsed_days": 0, "nth_review": 1, "lapses": 0}
LARGEST = 1e9
HINT = "Probabilities of recall lie in [0, 1]; outcomes are 0 or 1 (False or True)."


@dataclass(frozen=True, slots=True)
class Curves:
    """Forgetting curves of a sample of scored reviews: same history, other elapsed times."""

    # [n]: Which review each curve belongs to; `user` is a code into `Predictions.users`
    user: IntArray
    fold: IntArray
    row: IntArray
    # float64 [n, k]: Elapsed days, strictly increasing along a row; NaN where a user has fewer
    # than k
    elapsed: FloatArray
    # float64 [n, k]: Share of the user's intervals each elapsed time stands for; 0 where NaN
    weight: FloatArray
    p: FloatArray  # [n, k]: Predicted probability of recall


@dataclass(frozen=True, slots=True)
class Predictions:
    """The hand-over between models and metrics: one entry per scored review.

    Attributes
    ----------
    users : tuple of user names
        What the codes in `user` stand for.
    user : int64 [n]
        Code of the user.
    fold : int64 [n]
        Fold the review was tested in.
    row : int64 [n]
        Position of the review in the user's log as it was read.
    card : int64 [n]
        Card of the review.
    p : float32 or float64 [n]
        Predicted probability of recall, in the precision the model computed it.
    recalled : bool [n]
        Outcome.
    day : int64 [n], optional
        Day of the review.
    elapsed_days : float64 [n], optional
        Whole days since the card's previous review.
    nth_review, lapses, last_rating, recalls : int64 [n], optional
        As in `Task`.
    curves : Curves, optional
        Absent where the model has no forgetting curve.
    """

    users: tuple[User, ...]
    user: IntArray
    fold: IntArray
    row: IntArray
    card: IntArray
    p: FloatArray
    recalled: BoolArray
    day: IntArray | None = None
    elapsed_days: FloatArray | None = None
    nth_review: IntArray | None = None
    lapses: IntArray | None = None
    last_rating: IntArray | None = None
    recalls: IntArray | None = None
    curves: Curves | None = None

    def __len__(self) -> int:
        """Count the scored reviews."""
        return len(self.p)


_SCORED = tuple(f for f in fields(Predictions) if f.name not in ("users", "user", "curves"))
# What is known of each scored review, besides its user: the one list of these columns.
PREDICTION_COLUMNS = tuple(f.name for f in _SCORED)
# Of these, what metrics sort reviews by and any prediction can lack.
OPTIONAL_COLUMNS = tuple(f.name for f in _SCORED if f.default is not MISSING)


def concatenate(parts: Sequence[Predictions]) -> Predictions | None:
    """Join predictions, keeping their order; None if there are none.

    Users that occur in several parts are recognised by name.
    """
    if not parts:
        return None
    code: dict[User, int] = {}
    users, curves = [], []
    for part in parts:
        new = np.array([code.setdefault(user, len(code)) for user in part.users], np.int64)
        users.append(new[part.user])
        if part.curves is not None:
            curves.append(replace(part.curves, user=new[part.curves.user]))
    columns = {}
    for name in PREDICTION_COLUMNS:
        each = [getattr(part, name) for part in parts]
        if not any(column is None for column in each):
            columns[name] = np.concatenate(each)
    joined = join_curves(curves)
    return Predictions(tuple(code), np.concatenate(users), curves=joined, **columns)


def select(predictions: Predictions, rows: IntArray | BoolArray | slice) -> Predictions:
    """Select scored reviews by number, mask or range; curves stay as they are."""
    return replace(
        predictions, **{name: column[rows] for name, column in columns_of(predictions).items()}
    )


def rows_fingerprint(predictions: Predictions) -> str:
    """Digest of which reviews of a user were scored and how they turned out.

    Whatever predicted them: two runs are comparable on a user only if this is equal.
    """
    order = np.argsort(predictions.row, kind="stable")
    digest = hashlib.sha256(predictions.row[order].astype("<i8").tobytes())
    digest.update(predictions.recalled[order].astype(np.uint8).tobytes())
    return digest.hexdigest()[:16]


def join_curves(parts: Sequence[Curves]) -> Curves | None:
    """Concatenate forgetting curves; None if there are none."""
    if not parts:
        return None
    columns = {}
    for f in fields(Curves):
        columns[f.name] = np.concatenate([getattr(part, f.name) for part in parts])
    return Curves(**columns)


def predictions_of(**columns: ArrayLike | None) -> Predictions:
    """Build the predictions of one unnamed user from columns in any container, and check them.

    ``p`` and ``recalled`` are needed, others are those of `Predictions`. The precision of
    predictions is kept.

    >>> predictions_of(p=[0.9, 0.4], recalled=[1, 0]).recalled
    array([ True, False])
    """
    arrays = {name: as_numbers(name, of) for name, of in columns.items() if of is not None}
    p, recalled = arrays["p"], arrays["recalled"]
    p = p if p.dtype.kind == "f" else p.astype(np.float64)
    zeros, rows = np.zeros(p.shape, np.int64), np.arange(p.size).reshape(p.shape)
    unknown: dict[str, Any] = {"user": zeros, "fold": zeros, "card": zeros, "row": rows}
    unchecked = Predictions(users=("",), **{**unknown, **arrays, "p": p})
    check_predictions(unchecked)
    return replace(unchecked, recalled=recalled.astype(np.bool_, copy=False))


def check_predictions(predictions: Predictions) -> None:
    """Raise an error that lists every problem of predictions that cannot be scored."""
    columns = columns_of(predictions)
    if problems := [*_problems(columns)]:
        listed = "".join(f"\n  - {problem}" for problem in problems)
        raise ScoreError(f"these predictions cannot be scored:{listed}\n  {HINT}")


def as_numbers(name: str, values: ArrayLike) -> NDArray[Any]:
    """Convert numbers in any common container to an array; what is missing becomes NaN."""
    try:
        array = np.asarray(values)
        if isinstance(values, np.ma.MaskedArray):
            array = np.where(np.ma.getmaskarray(values), np.nan, array)
        if array.dtype == object:
            import pandas as pd  # heavy, and rarely needed

            array = np.where(pd.isna(array), np.nan, array).astype(np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ScoreError(f"{name} cannot be read as numbers: {error}. {HINT}") from error
    if array.dtype.kind not in "biuf":
        raise ScoreError(f"{name} cannot be read as numbers: it is {array.dtype}. {HINT}")
    return array


def _problems(columns: Mapping[str, NDArray[Any]]) -> Iterator[str]:
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
