"""Concatenate and select predictions, and compute digests of their rows."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_eval.nouns import (
    PREDICTION_COLUMNS,
    BoolArray,
    Curves,
    IntArray,
    Predictions,
    Reviews,
    User,
    columns_of,
)


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


def reviews_fingerprint(reviews: Reviews) -> str:
    """Digest of a log: its cards, days, ratings and elapsed times."""
    digest = hashlib.sha256(str(reviews.user).encode())
    for column in (reviews.card, reviews.day, reviews.rating, reviews.elapsed_days):
        digest.update(np.ascontiguousarray(column, "<i8").data)
    if reviews.elapsed_seconds is not None:
        digest.update(np.ascontiguousarray(reviews.elapsed_seconds, "<f8").data)
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
