"""The results of users as rows of a table, and what they say of all users together."""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import compress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from srs_eval.evaluation.scoring import ScoredUser, Scores
from srs_eval.nouns import User
from srs_eval.results.coverage import CoverageCount
from srs_eval.results.fit_counts import FitCounts, reason_of
from srs_eval.results.summary import Summary
from srs_eval.results.tables import user_column

_COUNTS = ("fits", "failed", "fallback", "skipped", "not_converged")
_SUMS = (*_COUNTS, "forgotten")
_COUNTED = pa.map_(pa.string(), pa.int64())
_TOLD = (
    *("status", "reason", "reviews", "reviews_read", "left_out", "notes"),
    *("dropped", "unscored", "could_score"),
)


def users_table(users: Sequence[ScoredUser]) -> pa.Table:
    """Return one row per user: everything but fits and predictions.

    No column depends on how long the work took.
    """
    values = np.array([user.values for user in users], np.float64)
    missing = [_missing(user) for user in users]
    columns = {
        "user": user_column([user.user for user in users]),
        "is_text": pa.array([isinstance(user.user, str) for user in users]),
        "reviews": pa.array([user.reviews for user in users], pa.int64()),
        "rows": pa.array([user.rows for user in users], pa.string()),
        "values": pa.FixedSizeListArray.from_arrays(
            pa.array(values.ravel(), pa.float64()), values.shape[1]
        ),
        "forgotten": pa.array([user.forgotten for user in users], pa.int64()),
        # rows in the part; null where there are none
        "predictions": pa.array([_predicted(user) for user in users], pa.int64()),
        "curves": pa.array([_curve_rows(user) for user in users], pa.int64()),
        "reviews_read": pa.array([user.log.reviews for user in users], pa.int64()),
        "fingerprint": pa.array([user.log.fingerprint for user in users], pa.string()),
        "notes": pa.array([list(user.log.notes) for user in users], pa.list_(pa.string())),
        "status": pa.array([status for status, _ in missing], pa.string()),
        "reason": pa.array([reason for _, reason in missing], pa.string()),
        **{
            name: pa.array([list(getattr(user.log, name).items()) for user in users], _COUNTED)
            for name in ("left_out", "dropped", "unscored", "could_score")
        },
        "fit_note": pa.array([_fit_note(user) for user in users], pa.string()),
    }
    counts = [asdict(FitCounts.of(user.fits)) for user in users]
    columns |= {name: pa.array([count[name] for count in counts], pa.int64()) for name in _COUNTS}
    return pa.table(columns)


def users_of(table: pa.Table) -> list[User]:
    """Return the users of a table, numbers as numbers and texts as texts."""
    users: list[User] = table.column("user").to_pylist()
    if table.schema.field("user").type == pa.int64():
        return users
    kinds = table.column("is_text").to_pylist()
    return [user if text else int(user) for user, text in zip(users, kinds, strict=True)]


def of_all_users(tables: Iterable[pa.Table], names: Sequence[str]) -> tuple[Scores, Summary]:
    """Add up tables of users, in the order of the source; `names` are those of the metrics.

    Return the scores of the users with a fit that was not skipped, and of the summary the counts,
    the remarks, the digest of the logs, and what the scores rest on.
    """
    users: list[User] = []
    rows: list[str] = []
    # Arrays that grow in place: no second copy of all values is made.
    reviews, values = array("q"), array("d")
    counts: dict[str, Any] = dict.fromkeys(_SUMS, 0)
    left_out = Counter[str]()
    notes: list[str] = []
    fit_notes: list[str] = []
    logs, covered = hashlib.sha256(), CoverageCount()
    for table in tables:
        everyone = users_of(table)
        tried = pc.greater(table["fits"], table["skipped"])
        scored = table.filter(tried)
        users += compress(everyone, tried.to_pylist())
        rows += scored["rows"].to_pylist()
        reviews.frombytes(scored["reviews"].to_numpy().tobytes())
        flat = scored["values"].combine_chunks().flatten()
        values.frombytes(flat.to_numpy(zero_copy_only=False).tobytes())
        for name in _SUMS:
            counts[name] += pc.sum(table[name]).as_py() or 0
        fit_notes += filter(None, table["fit_note"].to_pylist())
        for user, row in zip(everyone, table.select(_TOLD).to_pylist(), strict=True):
            left_out.update(dict(row["left_out"]))
            notes += [f"user {user}: {note}" for note in row["notes"]]
            covered.add({"user": user, **row})
        logs.update("".join(table["fingerprint"].to_pylist()).encode())
    scores = Scores(
        tuple(users),
        np.asarray(reviews, np.int64),
        tuple(rows),
        tuple(names),
        np.asarray(values).reshape(len(users), len(names)),
    )
    facts = Summary(
        users=len(scores.complete),
        reviews=int(scores.reviews.sum()),
        **counts,
        left_out=dict(left_out),
        notes=tuple(notes),
        fit_notes=tuple(fit_notes),
        data_fingerprint=logs.hexdigest()[:16],
        coverage=covered.total,
    )
    return scores, facts


def a_fit_worked(table: pa.Table) -> bool:
    """Return whether a fit of the users of a table neither failed nor was skipped."""
    fits, failed, skipped = (pc.sum(table[name]).as_py() for name in ("fits", "failed", "skipped"))
    return bool(fits > failed + skipped)


def _predicted(user: ScoredUser) -> int | None:
    return None if user.predictions is None else len(user.predictions)


def _curve_rows(user: ScoredUser) -> int | None:
    curves = None if user.predictions is None else user.predictions.curves
    return None if curves is None else curves.p.size


def _missing(user: ScoredUser) -> tuple[str, str]:
    """Return how a fit without predictions ended, and its reason; "" where there is none."""
    if user.is_complete:
        return "", ""
    for status in ("failed", "skipped"):
        fit = next((fit for fit in user.fits if fit.status == status), None)
        if fit is not None:
            return status, reason_of(fit)
    return "skipped", "nothing was scored"


def _fit_note(user: ScoredUser) -> str:
    return reason_of(user.fits[-1]) if user.fits and user.fits[-1].reason else ""
