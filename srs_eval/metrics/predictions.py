"""Predictions of scored reviews as columns: the hand-over between models and metrics."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_eval.data.reviews import BoolArray, FloatArray, IntArray, User, columns_of


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
    users: tuple[User, ...] = tuple(dict.fromkeys(user for part in parts for user in part.users))
    code = {user: number for number, user in enumerate(users)}
    recode = [np.array([code[user] for user in part.users], np.int64) for part in parts]
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in PREDICTION_COLUMNS
        if all(getattr(part, name) is not None for part in parts)
    }
    user = np.concatenate([new[part.user] for new, part in zip(recode, parts, strict=True)])
    curves = [
        replace(part.curves, user=new[part.curves.user])
        for new, part in zip(recode, parts, strict=True)
        if part.curves is not None
    ]
    return Predictions(users=users, user=user, curves=join_curves(curves), **columns)


def select(predictions: Predictions, rows: IntArray | BoolArray | slice) -> Predictions:
    """Select scored reviews by number, mask or range; curves stay as they are."""
    return replace(
        predictions, **{name: column[rows] for name, column in columns_of(predictions).items()}
    )


def read_only(predictions: Predictions) -> Predictions:
    """View predictions as arrays that cannot be written into: metrics share them."""
    columns: dict[str, Any] = {
        name: _locked(column) for name, column in columns_of(predictions).items()
    }
    curves = predictions.curves
    if curves is not None:
        curves = Curves(**{f.name: _locked(getattr(curves, f.name)) for f in fields(Curves)})
    return replace(predictions, curves=curves, **columns)


def _locked(column: NDArray[Any]) -> NDArray[Any]:
    view = column.view()
    view.flags.writeable = False
    return view


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
    return Curves(
        **{
            f.name: np.concatenate([getattr(part, f.name) for part in parts])
            for f in fields(Curves)
        }
    )
