"""Saved predictions of one user after the other, whatever order they lie in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from srs_eval.errors import ConfigError
from srs_eval.metrics.proper import Brier, LogLoss
from srs_eval.nouns import FloatArray, Predictions, ProperScore, User
from srs_eval.nouns.predictions import select
from srs_eval.results.run import PREDICTIONS, Run, reading

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
_NEEDED = ("user", "fold", "row", "card", "p", "recalled")
# Predictions may be single precision, and sums be taken in another order.
_CLOSE = 1e-5


class SavedPredictions:
    """The predictions file of a run, read user by user.

    Runs of one source keep their users in the same order, and then each row group is read
    once; never more than one of them is in memory.

    Raises
    ------
    ConfigError
        Here or in reading a user, if the file cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / PREDICTIONS
        self._held: tuple[int, pa.Table] | None = None
        self._parts: dict[User, list[tuple[int, int, int]]] = {}
        with reading(self._path):
            self._file = pq.ParquetFile(self._path, page_checksum_verification=True)
            names = self._file.schema_arrow.names
            lacking = [name for name in _NEEDED if name not in names]
            if lacking:
                raise KeyError(*lacking)
            self._columns = [name for name in _COLUMNS if name in names]
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
            with reading(self._path):
                self._held = (number, self._file.read_row_group(number, columns=self._columns))
        return self._held[1]


class OwnPredictions(SavedPredictions):
    """The predictions that the scores of a run were made of; others are refused.

    Parameters
    ----------
    run : Run
        With scores on the reviews that count, which need not be all that were predicted.
    """

    def __init__(self, run: Run) -> None:
        super().__init__(run.place)
        self.run = run
        self._scores = {
            name: dict(zip(run.rows, run.scores[name].tolist(), strict=True))
            for name in PER_REVIEW
            if name in run.scores
        }

    def check(self, predictions: Predictions) -> None:
        """Make sure that predictions of a user have the scores of the run.

        Raises
        ------
        ConfigError
            If they have not.
        """
        (user,) = predictions.users
        scores = {name: of.get(user, math.nan) for name, of in self._scores.items()}
        _require_scores(self.run, predictions, scores)


def has_predictions(run: Run) -> bool:
    """Whether a run has kept its predictions."""
    return run.place.is_dir() and (run.place / PREDICTIONS).is_file()


def losses(predictions: Predictions, metric: str) -> FloatArray:
    """Score each review by log loss, or by the Brier score where that is the metric."""
    return PER_REVIEW[scored_by(metric)].per_review(predictions)


def scored_by(metric: str) -> str:
    """Name the score of single reviews that stands for a metric."""
    return metric if metric in PER_REVIEW else "log_loss"


def require_same_rows(run: Run, first: Predictions, other: Predictions | None) -> Predictions:
    """Make sure that a run holds predictions of the same reviews as those of another.

    Raises
    ------
    ConfigError
        If it does not.
    """
    if (
        other is None
        or len(other) != len(first)
        or (other.row != first.row).any()
        or (other.recalled != first.recalled).any()
    ):
        raise not_its_own(run, first.users[0])
    return other


def _require_scores(run: Run, predictions: Predictions, scores: Mapping[str, float]) -> None:
    for name, score in scores.items():
        if math.isnan(score):
            continue
        found = float(losses(predictions, name).mean())
        if not math.isclose(found, score, rel_tol=_CLOSE, abs_tol=1e-12):
            raise ConfigError(
                f"{run.place / PREDICTIONS}: the predictions of user {predictions.users[0]} have "
                f"a {name} of {found:.6g}, and scores.parquet says {score:.6g}; the files are of "
                "different runs"
            )


def not_its_own(run: Run, user: User) -> ConfigError:
    """Say that the predictions and the scores in a folder are not of the same run."""
    return ConfigError(
        f"{run.place / PREDICTIONS}: the predictions of user {user} are not of the reviews that "
        "scores.parquet is about; the files are of different runs"
    )
