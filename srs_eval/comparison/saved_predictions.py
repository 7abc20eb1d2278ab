"""Saved predictions of one user after the other, whatever order they lie in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from srs_eval.comparison.runs import PREDICTIONS, Run
from srs_eval.errors import ConfigError
from srs_eval.metrics.proper import Brier, LogLoss
from srs_eval.nouns import FloatArray, Predictions, ProperScore, User
from srs_eval.predictions import select

# Scores that are a mean over reviews, so that it can be said where models differ.
PER_REVIEW: dict[str, ProperScore] = {"log_loss": LogLoss(), "brier": Brier()}
_COLUMNS = (
    "fold",
    "row",
    "card",
    "p",
    "recalled",
    "day",
    "elapsed_days",
    "nth_review",
    "lapses",
    "last_rating",
    "train_rate",
)


class SavedPredictions:
    """The predictions file of a run, read user by user.

    Runs of one source keep their users in the same order, and then each row group is read
    once; never more than one of them is in memory.
    """

    def __init__(self, folder: Path) -> None:
        self._file = pq.ParquetFile(folder / PREDICTIONS)
        names = self._file.schema_arrow.names
        self._columns = [name for name in _COLUMNS if name in names]
        self._held: tuple[int, pa.Table] | None = None
        self._parts: dict[User, list[tuple[int, int, int]]] = {}
        for group in range(self._file.num_row_groups):
            self._note_users(group)

    def read(self, user: User) -> Predictions | None:
        """Read the predictions of one user in order of their rows; None if there are none."""
        parts = self._parts.get(user)
        if not parts:
            return None
        table = pa.concat_tables([self._group(n).slice(begin, size) for n, begin, size in parts])
        columns: dict[str, Any] = {
            name: np.asarray(table.column(name).to_numpy()) for name in self._columns
        }
        found = Predictions(users=(user,), user=np.zeros(len(table), np.int64), **columns)
        in_order = bool((np.diff(found.row) > 0).all())
        return found if in_order else select(found, np.argsort(found.row, kind="stable"))

    def _note_users(self, group: int) -> None:
        column = self._file.read_row_group(group, columns=["user"]).column("user")
        if not len(column):
            return
        encoded = column.combine_chunks().dictionary_encode()
        codes = np.asarray(encoded.indices)
        begins = np.flatnonzero(np.diff(codes, prepend=-1))
        sizes = np.diff(np.append(begins, len(codes)))
        names = encoded.dictionary.to_pylist()
        for begin, size in zip(begins.tolist(), sizes.tolist(), strict=True):
            self._parts.setdefault(names[codes[begin]], []).append((group, begin, size))

    def _group(self, number: int) -> pa.Table:
        if self._held is None or self._held[0] != number:
            self._held = (number, self._file.read_row_group(number, columns=self._columns))
        return self._held[1]


def has_predictions(run: Run) -> bool:
    """Whether a run has kept its predictions."""
    return run.place.is_dir() and (run.place / PREDICTIONS).is_file()


def losses(predictions: Predictions, metric: str) -> FloatArray:
    """Score each review by log loss, or by the Brier score where that is the metric."""
    return PER_REVIEW[scored_by(metric)].per_review(predictions)


def scored_by(metric: str) -> str:
    """Name the score of single reviews that stands for a metric."""
    return metric if metric in PER_REVIEW else "log_loss"


def check_same_rows(run: Run, first: Predictions, other: Predictions | None) -> Predictions:
    """Make sure that two runs hold predictions of the same reviews.

    Raises
    ------
    ConfigError
        If they do not.
    """
    if (
        other is None
        or len(other) != len(first)
        or (other.row != first.row).any()
        or (other.recalled != first.recalled).any()
    ):
        raise not_its_own(run, first.users[0])
    return other


def not_its_own(run: Run, user: User) -> ConfigError:
    """Say that the predictions and the scores in a folder are not of the same run."""
    return ConfigError(
        f"{run.place / PREDICTIONS}: the predictions of user {user} are not of the reviews that "
        "scores.parquet is about; the files are of different runs"
    )
