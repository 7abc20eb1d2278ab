"""Predictions, curves and fits as Arrow tables, and back: the parquet files of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

import numpy as np
import pyarrow as pa

from srs_eval.evaluation.scoring import Scores
from srs_eval.nouns import Curves, Fit, IntArray, Part, Predictions, User

_FACTS = (*("day", "elapsed_days", "nth_review", "lapses", "last_rating", "train_rate"),)
_LISTS = ("parameters", "standard_errors")
_NUMBERS = pa.list_(pa.float64())
_PARTS = pa.list_(
    pa.struct(
        {
            "name": pa.string(),
            "option": pa.string(),
            **dict.fromkeys(_LISTS, _NUMBERS),
            "n_train": pa.int64(),
            "standalone": pa.bool_(),
            "title": pa.string(),
        }
    )
)


def user_column(users: Sequence[User]) -> pa.Array:
    """Users as integers where all of them are, as text otherwise."""
    if all(isinstance(user, int) for user in users):
        return pa.array(users, pa.int64())
    return pa.array([str(user) for user in users], pa.string())


def predictions_table(predictions: Predictions) -> pa.Table:
    """One row per scored review."""
    names = [name for name in _FACTS if getattr(predictions, name) is not None]
    columns = {
        "user": _named(predictions.user, predictions.users),
        **{name: getattr(predictions, name) for name in ("fold", "row", "card")},
        "p": predictions.p,
        "recalled": predictions.recalled,
        **{name: getattr(predictions, name) for name in names},
    }
    return pa.table(columns)


def curves_table(predictions: Predictions) -> pa.Table | None:
    """One row per sampled review and elapsed time; None without a forgetting curve."""
    curves = predictions.curves
    if curves is None:
        return None
    times = curves.p.shape[1]
    wide = {name: np.repeat(getattr(curves, name), times) for name in ("user", "fold", "row")}
    return pa.table(
        {
            "user": _named(wide["user"], predictions.users),
            "fold": wide["fold"],
            "row": wide["row"],
            "elapsed": curves.elapsed.ravel(),
            "weight": curves.weight.ravel(),
            "p": curves.p.ravel(),
        },
        metadata={"times": str(times)},
    )


def read_predictions(table: pa.Table, curves: pa.Table | None = None) -> Predictions:
    """Turn the tables of a run back into predictions."""
    users, user = _coded(table.column("user"))
    columns: dict[str, Any] = {
        name: _array(table, name) for name in table.column_names if name != "user"
    }
    return Predictions(users=users, user=user, curves=_read_curves(curves, users), **columns)


def fits_table(fits: Sequence[Fit]) -> pa.Table:
    """One row per fit; `fold` is -1 where a whole user was skipped or failed.

    Models that are made of several have their fits in `parts`, which is empty for all others.
    """
    names = [f.name for f in fields(Fit) if f.name not in ("user", *_LISTS, "parts")]
    parts = [[asdict(part) for part in fit.parts] for fit in fits]
    return pa.table(
        {
            "user": user_column([fit.user for fit in fits]),
            **{name: [getattr(fit, name) for fit in fits] for name in names},
            **{name: pa.array([getattr(fit, name) for fit in fits], _NUMBERS) for name in _LISTS},
            "parts": pa.array(parts, _PARTS),
        }
    )


def scores_table(scores: Scores) -> pa.Table:
    """One row per user: scored reviews, their digest, and each metric."""
    values = {name: scores.values[:, column] for column, name in enumerate(scores.names)}
    about = {"reviews": scores.reviews, "rows": list(scores.rows)}
    return pa.table({"user": user_column(scores.users), **about, **values})


def read_fits(table: pa.Table) -> tuple[Fit, ...]:
    """Turn the table of fits back into fits."""
    return tuple(fit_from(row) for row in table.to_pylist())


def fit_from(row: Mapping[str, Any]) -> Fit:
    """Turn a row of the table of fits, or JSON with the same content, back into a fit."""
    return Fit(**{**_with_tuples(row), "parts": parts_from(row.get("parts", ()))})


def parts_from(rows: Iterable[Mapping[str, Any]]) -> tuple[Part, ...]:
    """Turn the parts of a fit, as a table or JSON holds them, back into values."""
    return tuple(Part(**_with_tuples(row)) for row in rows)


def _with_tuples(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, **{name: tuple(row[name]) for name in _LISTS if name in row}}


def _named(codes: IntArray, users: Sequence[User]) -> pa.Array:
    return user_column(users).take(pa.array(codes))


def _coded(column: pa.ChunkedArray) -> tuple[tuple[User, ...], IntArray]:
    encoded = column.combine_chunks().dictionary_encode()
    codes: IntArray = np.asarray(encoded.indices).astype(np.int64)
    return tuple(encoded.dictionary.to_pylist()), codes


def _array(table: pa.Table, name: str) -> np.ndarray[Any, Any]:
    return np.asarray(table.column(name).to_numpy(zero_copy_only=False))


def _read_curves(table: pa.Table | None, users: tuple[User, ...]) -> Curves | None:
    if table is None:
        return None
    times = int(table.schema.metadata[b"times"])
    names, codes = _coded(table.column("user"))
    recode = np.array([users.index(name) for name in names], np.int64)
    columns = {
        name: _array(table, name).reshape(-1, times)
        for name in ("fold", "row", "elapsed", "weight", "p")
    }
    return Curves(
        user=recode[codes].reshape(-1, times)[:, 0],
        fold=columns["fold"][:, 0],
        row=columns["row"][:, 0],
        elapsed=columns["elapsed"],
        weight=columns["weight"],
        p=columns["p"],
    )
