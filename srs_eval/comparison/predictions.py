"""Saved predictions of runs for the same reviews; no more than one user of each is in memory."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import reduce

import numpy as np

from srs_eval.comparison.entry import Entry
from srs_eval.data.reviews import FloatArray, User
from srs_eval.errors import ConfigError
from srs_eval.metrics.predictions import Predictions, rows_fingerprint, select
from srs_eval.metrics.tally import log_losses
from srs_eval.runs.folder import PREDICTIONS

# Metrics that are a mean of a loss of each review
PER_REVIEW = ("log_loss", "brier")
# Columns that do not depend on the run: logs that differ in one of them are different logs
SAME = {"recalled": "outcomes", "card": "cards", "day": "days"}


class SameReviews:
    """The predictions of runs for the same reviews in the same order, read user by user."""

    def __init__(self, runs: Sequence[Entry]) -> None:
        self._entries = {n: run for n, run in enumerate(runs) if run.has_predictions}
        self.runs = [*self._entries]  # Numbers of the runs that saved predictions
        # Entries outlive comparisons, and many of them must not keep their files open
        self._saved = {n: copy(entry.run) for n, entry in self._entries.items() if entry.run}
        scores = {n: run.by_user for n, run in self._saved.items()}
        self._digests = {n: dict(zip(s.users, s.rows, strict=True)) for n, s in scores.items()}

    def read(self, user: User) -> dict[int, Predictions]:
        """Return the predictions of the reviews in common of a user by the number of the run.

        Predictions of other reviews than the scores of their run are refused.
        """
        parts = {}
        for number, run in self._saved.items():
            predictions = run.predictions(user, curves=False)
            if predictions is None or rows_fingerprint(predictions) != self._digests[number][user]:
                raise ConfigError(
                    f"{run.folder / PREDICTIONS}: the predictions of user {user} are not of the "
                    "reviews that scores.parquet is about; the files are of different runs"
                )
            parts[number] = predictions
        several = [*parts.values()]
        if all(np.array_equal(part.row, several[0].row) for part in several):
            return parts
        common = _in_common([*self._entries.values()], several)
        return dict(zip(parts, common, strict=True))


def _in_common(runs: Sequence[Entry], parts: Sequence[Predictions]) -> list[Predictions]:
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
