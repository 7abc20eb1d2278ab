"""Score the predictions that Clanki, a fork of Anki, keeps of each review beside the collection.

    cd examples/clanki
    python -m srs_eval --config-dir conf -m data=clanki data.path=collection.anki2 \
        data.predictions=collection.retrievability-cache.sqlite \
        algo=recorded algo.column=fsrs7,rwkv_instant protocol=recorded \
        'protocol.columns=[fsrs7,rwkv_instant]'

The file is specified in ``spec/database.md`` of Expertium/Clanki. A row is a prediction of a review
by an algorithm, with the role that the review had when the algorithm was fitted. Predictions of a
model that was fitted to the very reviews it predicts are no predictions, and are left out; weights
of RWKV are frozen, and were learned from no review of the log.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from srs_eval.data.anki.collection import AnkiCollection
from srs_eval.data.reviews import (
    FloatArray,
    IntArray,
    Reviews,
    User,
)
from srs_eval.errors import ReviewLogError

TABLES = {
    "fsrs7": "search_stats_fsrs_review_retrievability",
    "rwkv_instant": "search_stats_rwkv_review_retrievability",
    "rwkv_curve": "review_predictions",
}
FITTED = ("fsrs7",)
BEFORE_THE_ANSWER = ("validation_fold", "test_fold", "post_optimization")


@dataclass(frozen=True)
class ClankiCollection(AnkiCollection):
    """An Anki collection with Clanki's predictions, in `Reviews.recorded`."""

    predictions: str | Path = ""

    def read(self, user: User) -> Reviews:
        """Read the log of the user, and the predictions of each algorithm that has any."""
        log = self.read_with_table(user)
        ids = log.revlog.id[log.rows]
        file = Path(self.predictions).expanduser()
        try:
            with closing(
                sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)
            ) as opened:
                columns = {name: predictions_of(name, opened, ids) for name in TABLES}
        except (sqlite3.Error, pd.errors.DatabaseError) as error:
            raise ReviewLogError(str(file), [f"cannot be read: {error}"]) from error
        known = {name: p for name, p in columns.items() if not np.isnan(p).all()}
        if not known:
            raise ReviewLogError(str(file), ["there are no predictions of these reviews in it"])
        p = np.column_stack([*known.values()])
        return replace(log.reviews, recorded=p, recorded_names=tuple(known))


def predictions_of(name: str, opened: sqlite3.Connection, ids: IntArray) -> FloatArray:
    """Return the newest prediction of each review by its id, NaN where there is none."""
    table = TABLES[name]
    if not opened.execute("select 1 from sqlite_master where name = ?", [table]).fetchone():
        return np.full(len(ids), np.nan)
    rows = pd.read_sql(f"select * from {table}", opened)
    if not rows["prediction"].between(0, 1).all():
        raise ReviewLogError(table, ["prediction: expected probabilities from 0 to 1"])
    if name in FITTED:
        rows = rows[rows["sample_role"].isin(BEFORE_THE_ANSWER)]
    newest = ["updated_at", "fold_index", "source"]
    rows = rows.sort_values(newest, ascending=[False, False, True], kind="stable")
    rows = rows.drop_duplicates("revlog_id").set_index("revlog_id")
    return rows["prediction"].reindex(ids).to_numpy(np.float64)
