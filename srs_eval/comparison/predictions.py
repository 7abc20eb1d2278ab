"""Saved predictions of runs for the same reviews, checked against the scores of each run.

No more than one user of each run is in memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from functools import reduce
from pathlib import Path

import numpy as np

from srs_eval.comparison.entry import Entry
from srs_eval.data.reviews import FloatArray, User
from srs_eval.errors import ConfigError
from srs_eval.metrics.predictions import Predictions, rows_fingerprint, select
from srs_eval.metrics.tally import log_losses
from srs_eval.runs.folder import PREDICTIONS

# Metrics that are a mean of a loss of each review.
PER_REVIEW = ("log_loss", "brier")
# Columns that do not depend on the run. Logs that differ in one of them are different logs.
SAME = {"recalled": "outcomes", "card": "cards", "day": "days"}
# Predictions may be single precision, and sums be taken in another order.
_CLOSE = 1e-5


class SameReviews:
    """The predictions of runs for the same reviews in the same order, read user by user."""

    def __init__(self, runs: Sequence[Entry]) -> None:
        self.runs = [n for n, run in enumerate(runs) if run.has_predictions]  # Those that saved
        self._entries = [runs[n] for n in self.runs]
        self._files = [OwnPredictions(entry) for entry in self._entries]

    def read(self, user: User) -> dict[int, Predictions]:
        """Return the predictions of the reviews in common of a user by the number of the run."""
        for entry in self._entries:
            if entry.rows[user] != self._entries[0].rows[user]:
                raise not_its_own(entry.place, user)
        parts = [file.read(user) for file in self._files]
        if not all(np.array_equal(part.row, parts[0].row) for part in parts):
            parts = in_common(self._entries, parts)
        return dict(zip(self.runs, parts, strict=True))


class OwnPredictions:
    """The predictions that the scores of a run were made of; others are refused."""

    def __init__(self, entry: Entry) -> None:
        assert entry.run is not None
        # Entries outlive comparisons, and many of them must not keep their files open
        self._run, scores = copy(entry.run), entry.run.by_user
        self._names = [name for name in PER_REVIEW if name in scores.names]
        values = scores.values[:, [scores.names.index(name) for name in self._names]].tolist()
        known = zip(scores.rows, values, strict=True)
        self._known = dict(zip(scores.users, known, strict=True))  # Digests and scores

    def read(self, user: User) -> Predictions:
        """Return the predictions that the scores of a user are of."""
        predictions = self._run.predictions(user, curves=False)
        digest, scores = self._known[user]
        if predictions is None or rows_fingerprint(predictions) != digest:
            raise not_its_own(self._run.folder, user)
        for name, score in zip(self._names, scores, strict=True):
            loss = float(losses(predictions, name).mean())
            if not (math.isnan(score) or math.isclose(loss, score, rel_tol=_CLOSE, abs_tol=1e-12)):
                raise ConfigError(
                    f"{self._run.folder / PREDICTIONS}: the predictions of user {user} have a "
                    f"{name} of {loss:.6g}, and scores.parquet says {score:.6g}; the files are of "
                    "different runs"
                )
        return predictions


def not_its_own(folder: Path, user: User) -> ConfigError:
    """Return the error that predictions and scores in a folder belong to different runs."""
    return ConfigError(
        f"{folder / PREDICTIONS}: the predictions of user {user} are not of the reviews that "
        "scores.parquet is about; the files are of different runs"
    )


def in_common(runs: Sequence[Entry], parts: Sequence[Predictions]) -> list[Predictions]:
    """Select the reviews of a user that all runs predicted, ordered by row."""
    for run, part in zip(runs, parts, strict=True):
        twice = np.flatnonzero(np.diff(part.row) == 0)
        if len(twice):
            raise ConfigError(
                f"{run.place / PREDICTIONS}: {run.name} scored review {part.row[twice[0]] + 1} of "
                f"user {part.users[0]} in more than one fold, so it has no single prediction to "
                "compare"
            )
    rows = reduce(np.intersect1d, [part.row for part in parts])
    first, *others = common = [select(part, np.isin(part.row, rows)) for part in parts]
    for run, other in zip(runs[1:], others, strict=True):
        for name, noun in SAME.items():
            ours, theirs = getattr(first, name), getattr(other, name)
            if ours is None or theirs is None or not (ours != theirs).any():
                continue
            row = first.row[np.flatnonzero(ours != theirs)[0]]
            raise ConfigError(
                f"{runs[0].name} and {run.name} are of different logs: for user {first.users[0]} "
                f"they have different {noun}, first at review {row + 1} of the log, so they have "
                "no reviews in common"
            )
    return common


def losses(predictions: Predictions, metric: str) -> FloatArray:
    """Score each review by log loss, or by the Brier score where that is the metric."""
    p, recalled = predictions.p.astype(np.float64, copy=False), predictions.recalled
    return (p - recalled) ** 2 if metric == "brier" else log_losses(p, recalled)
