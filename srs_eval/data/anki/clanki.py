"""Predictions that Clanki, a fork of Anki, keeps of each review in a file beside the collection.

The file ``collection.retrievability-cache.sqlite`` is specified in ``spec/database.md`` of
Expertium/Clanki. A row is one prediction of one review by one algorithm, with the role that the
review had when the algorithm was fitted. Predictions of a model that was fitted to the very reviews
it predicts are no predictions, and are counted instead of read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from srs_eval.data.anki.package import collection_copy
from srs_eval.data.untrusted_database import open_database
from srs_eval.errors import ReviewLogError, Violation
from srs_eval.nouns import IntArray, Matrix

# Algorithms in tables of their own.
_TABLES = {
    "search_stats_fsrs_review_retrievability": "fsrs7",
    "search_stats_rwkv_review_retrievability": "rwkv_instant",
}
# Algorithms by number. So far the pass that records RWKV is all that writes it, for one algorithm.
_COMMON, _ONLY = "review_predictions", "rwkv_curve"
# Their weights are frozen: no review was ever learned from, whatever its role.
_FROZEN = ("rwkv_instant", _ONLY)
_ROLES = ("validation_fold", "test_fold", "post_optimization")
_COLUMNS = ("revlog_id", "prediction", "updated_at", "sample_role", "fold_index", "source")
_ROWS_AT_MOST = 50_000_000


@dataclass(frozen=True, slots=True)
class Recordings:
    """Predictions of the reviews of a log."""

    names: tuple[str, ...]  # Algorithms
    p: Matrix  # [reviews, algorithms]: NaN where there is none
    notes: tuple[str, ...]  # What was read and what was not, with numbers


def read_recordings(path: str | Path, answered: IntArray) -> Recordings:
    """Read the predictions of reviews, given by their ids in the review table, int64 [n].

    Of several predictions of a review by one algorithm, the newest counts, as in Clanki. The file
    is copied, never opened in place. Raise `ReviewLogError` if it is no such file.
    """
    file = Path(path).expanduser()
    tables = [*_TABLES, _COMMON]
    with (
        collection_copy(file) as copy,
        open_database(copy.database, str(file), tables=tables) as connection,
    ):
        found = list(_by_algorithm(connection, str(file)))
    if not found:
        what = f"there are no predictions in it: expected rows in {', '.join(tables)}"
        hint = "Name the file collection.retrievability-cache.sqlite beside a Clanki collection."
        raise ReviewLogError(str(file), [Violation(what, "empty")], hint)
    columns, notes = [], []
    for name, rows in found:
        counts = rows["sample_role"].isin(_ROLES) | (name in _FROZEN)
        kept = rows[counts].sort_values(
            ["updated_at", "fold_index", "source"], ascending=[False, False, True], kind="stable"
        )
        kept = kept.drop_duplicates("revlog_id").set_index("revlog_id")
        columns.append(kept["prediction"].reindex(answered).to_numpy(np.float64))
        notes.append(_note(name, kept, answered, int((~counts).sum())))
    return Recordings(tuple(name for name, _ in found), np.column_stack(columns), tuple(notes))


def _by_algorithm(
    connection: sqlite3.Connection, source: str
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Read the rows of each algorithm that has any."""
    for table in (*_TABLES, _COMMON):
        present = {str(row[1]) for row in connection.execute(f"pragma table_info({table})")}
        wanted = [*_COLUMNS, *(["algorithm"] if table == _COMMON else [])]
        if not present:
            continue
        lacking = [name for name in wanted if name not in present]
        if lacking:
            what = f"its table {table} has no column {', '.join(lacking)}"
            raise ReviewLogError(source, [Violation(what, "missing")])
        rows = _rows(connection, source, table, wanted)
        if table != _COMMON:
            named = [(_TABLES[table], rows)]
        else:
            parts = [*rows.groupby("algorithm")]
            named = [(f"algorithm_{number}", part) for number, part in parts]
            named = [(_ONLY, rows)] if len(parts) == 1 else named
        yield from ((name, part) for name, part in named if len(part))


def _rows(
    connection: sqlite3.Connection, source: str, table: str, wanted: Sequence[str]
) -> pd.DataFrame:
    """Read a table; raise if a value is none that Clanki writes."""
    (count,) = connection.execute(f"select count(*) from {table} not indexed").fetchone()
    if count > _ROWS_AT_MOST:
        what = f"its table {table} has {count:,} rows, more than {_ROWS_AT_MOST:,}"
        raise ReviewLogError(source, [what])
    good = [f"typeof({name}) = 'integer'" for name in ("revlog_id", "updated_at", "fold_index")]
    good += ["typeof(prediction) in ('real', 'integer')", "prediction between 0 and 1"]
    good += ["typeof(algorithm) = 'integer'"] if "algorithm" in wanted else []
    condition = " and ".join(good)
    (bad,) = connection.execute(
        f"select count(*) from {table} not indexed where not coalesce({condition}, 0)"
    ).fetchone()
    if bad:
        what = f"{bad:,} of {count:,} rows of {table} have no probability from 0 to 1 of a review"
        raise ReviewLogError(source, [Violation(what, "out_of_range", f"{table}.prediction")])
    selected = connection.execute(f"select {', '.join(wanted)} from {table} not indexed")
    return pd.DataFrame(selected.fetchall(), columns=list(wanted))


def _note(name: str, kept: pd.DataFrame, answered: IntArray, fitted: int) -> str:
    """Say what was read of an algorithm, and what was not."""
    of_log = kept[kept.index.isin(answered)]
    later = int((of_log["updated_at"] > of_log.index).sum())
    how = "by frozen weights" if name in _FROZEN else "out of fold or after the fit"
    return (
        f"recorded predictions of {name}: {len(of_log):,} of {len(answered):,} reviews, {how} "
        f"({later:,} computed later than the answer); not used: {fitted:,} of a final fit to the "
        f"same reviews, {len(kept) - len(of_log):,} of reviews that are not in the log"
    )
