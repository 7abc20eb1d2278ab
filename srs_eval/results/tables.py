"""Predictions, curves, fits and scores as Arrow tables, and back: one codec for all files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

import numpy as np
import pyarrow as pa

from srs_eval.evaluation.scoring import Scores
from srs_eval.nouns import (
    OPTIONAL_COLUMNS,
    PREDICTION_COLUMNS,
    Curves,
    Fit,
    IntArray,
    Part,
    Predictions,
    User,
)
from srs_eval.text.validated import validated

# Columns that tables of predictions and of curves cannot lack.
NEEDED = ("user", *(name for name in PREDICTION_COLUMNS if name not in OPTIONAL_COLUMNS))
CURVE_COLUMNS = tuple(f.name for f in fields(Curves))

_ABOUT_USER = ("user", "reviews", "rows")
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
_CONTRIBUTIONS = pa.list_(
    pa.struct({"name": pa.string(), "gain": pa.float64(), "standard_error": pa.float64()})
)


def predictions_table(predictions: Predictions) -> pa.Table:
    """Return one row per scored review."""
    columns = {name: getattr(predictions, name) for name in PREDICTION_COLUMNS}
    present = {name: column for name, column in columns.items() if column is not None}
    return pa.table({"user": _named(predictions.user, predictions.users), **present})


def curves_table(predictions: Predictions) -> pa.Table | None:
    """Return one row per sampled review and elapsed time; None without a forgetting curve."""
    curves = predictions.curves
    if curves is None:
        return None
    times = curves.p.shape[1]
    columns = {name: getattr(curves, name) for name in CURVE_COLUMNS}
    long = {
        name: column.ravel() if column.ndim == 2 else np.repeat(column, times)
        for name, column in columns.items()
    }
    named = {"user": _named(long.pop("user"), predictions.users)}
    return pa.table({**named, **long}, metadata={"times": str(times)})


def common_schema(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Return a schema that holds all: text if any user has a name, the highest precision of p."""
    common = schemas[0]
    for position, field in enumerate(common):
        kinds = {schema.field(field.name).type for schema in schemas}
        if len(kinds) > 1:
            wider = pa.string() if pa.string() in kinds else pa.float64()
            common = common.set(position, field.with_type(wider))
    return common


def read_predictions(user: User, table: pa.Table, curves: pa.Table | None = None) -> Predictions:
    """Turn the rows of one user back into predictions."""
    columns: dict[str, Any] = {
        name: _array(table, name) for name in PREDICTION_COLUMNS if name in table.column_names
    }
    codes = np.zeros(len(table), np.int64)
    sampled = None if curves is None or not len(curves) else _read_curves(curves)
    return Predictions(users=(user,), user=codes, curves=sampled, **columns)


def fits_table(fits: Sequence[Fit]) -> pa.Table:
    """Return one row per fit; `fold` is -1 where a whole user was skipped or failed.

    Models that are made of several have their fits in `parts`, which is empty for all others.
    The column `contributions` is absent where no fit has any.
    """
    nested = ("parts", "contributions")
    names = [f.name for f in fields(Fit) if f.name not in ("user", *_LISTS, *nested)]
    parts = [[asdict(part) for part in fit.parts] for fit in fits]
    table = pa.table(
        {
            "user": user_column([fit.user for fit in fits]),
            **{name: [getattr(fit, name) for fit in fits] for name in names},
            **{name: pa.array([getattr(fit, name) for fit in fits], _NUMBERS) for name in _LISTS},
            "parts": pa.array(parts, _PARTS),
        }
    )
    if not any(fit.contributions for fit in fits):
        return table
    found = [[asdict(contribution) for contribution in fit.contributions] for fit in fits]
    return table.append_column("contributions", pa.array(found, _CONTRIBUTIONS))


def read_fits(table: pa.Table) -> tuple[Fit, ...]:
    """Turn the table of fits back into fits."""
    return tuple(fit_from(row) for row in table.to_pylist())


def fit_from(row: Mapping[str, Any]) -> Fit:
    """Turn a row of the table of fits, or JSON with the same content, back into a fit."""
    return validated(Fit, {name: value for name, value in row.items() if value is not None})


def parts_from(rows: Iterable[Mapping[str, Any]]) -> tuple[Part, ...]:
    """Turn the parts of a fit, as a table or JSON holds them, back into values."""
    return validated(tuple[Part, ...], list(rows))


def scores_table(scores: Scores) -> pa.Table:
    """Return one row per user: scored reviews, their digest, and each metric."""
    values = {name: scores.values[:, column] for column, name in enumerate(scores.names)}
    about = {"reviews": scores.reviews, "rows": list(scores.rows)}
    return pa.table({"user": user_column(scores.users), **about, **values})


def read_scores(table: pa.Table) -> Scores:
    """Turn the table of scores back into scores."""
    users, reviews, rows = (table.column(name).to_pylist() for name in _ABOUT_USER)
    names = tuple(name for name in table.column_names if name not in _ABOUT_USER)
    values = np.full((len(table), len(names)), np.nan)
    for number, name in enumerate(names):
        values[:, number] = table.column(name).to_numpy()
    return Scores(tuple(users), np.array(reviews, np.int64), tuple(rows), names, values)


def user_column(users: Sequence[User]) -> pa.Array:
    """Return users as integers where all of them are, as text otherwise."""
    if all(isinstance(user, int) for user in users):
        return pa.array(users, pa.int64())
    return pa.array([str(user) for user in users], pa.string())


def concatenated(found: Sequence[pa.Table]) -> pa.Table:
    """Concatenate tables, of which some may lack columns; users go by text if they do in any."""
    kinds = {field.type for table in found for field in table.schema if field.name == "user"}
    if len(kinds) > 1:
        named = [table["user"].cast(pa.string()) for table in found]
        found = [t.set_column(0, "user", c) for t, c in zip(found, named, strict=True)]
    return pa.concat_tables(found, promote_options="permissive")


def _named(codes: IntArray, users: Sequence[User]) -> pa.Array:
    return user_column(users).take(pa.array(codes))


def _array(table: pa.Table, name: str) -> np.ndarray[Any, Any]:
    return np.asarray(table.column(name).to_numpy(zero_copy_only=False))


def _read_curves(table: pa.Table) -> Curves:
    times = int(table.schema.metadata[b"times"])
    wide = {
        name: _array(table, name).reshape(-1, times) for name in CURVE_COLUMNS if name != "user"
    }
    once = {name: wide[name][:, 0] for name in ("fold", "row")}
    return Curves(user=np.zeros(len(once["row"]), np.int64), **{**wide, **once})
