"""Predictions that are checked against the scores of their run, and losses by review."""

from __future__ import annotations

import math
from copy import copy

import numpy as np

from srs_eval.comparison.entry import Entry
from srs_eval.data.reviews import FloatArray, User
from srs_eval.errors import ConfigError
from srs_eval.metrics.predictions import Predictions
from srs_eval.metrics.tally import log_losses
from srs_eval.runs.folder import PREDICTIONS

# Metrics that are a mean of a loss of each review.
PER_REVIEW = ("log_loss", "brier")
# Predictions may be single precision, and sums be taken in another order.
_CLOSE = 1e-5


class OwnPredictions:
    """The predictions that the scores of a run were made of; others are refused."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        # Entries outlive comparisons, and many of them must not keep their files open.
        self._run = copy(entry.run)
        self._scores = {
            name: dict(zip(entry.rows, entry.scores[name].tolist(), strict=True))
            for name in PER_REVIEW
            if name in entry.scores
        }

    def read(self, user: User) -> Predictions | None:
        """Return the predictions of one user; None if there are none."""
        return None if self._run is None else self._run.predictions(user, curves=False)

    def check(self, predictions: Predictions) -> None:
        """Raise an error unless predictions of a user have the scores of the run."""
        (user,) = predictions.users
        for name, of_users in self._scores.items():
            loss, score = float(losses(predictions, name).mean()), of_users.get(user, math.nan)
            if not (math.isnan(score) or math.isclose(loss, score, rel_tol=_CLOSE, abs_tol=1e-12)):
                raise ConfigError(
                    f"{self.entry.place / PREDICTIONS}: the predictions of user {user} have a "
                    f"{name} of {loss:.6g}, and scores.parquet says {score:.6g}; the files are of "
                    "different runs"
                )


def losses(predictions: Predictions, metric: str) -> FloatArray:
    """Score each review by log loss, or by the Brier score where that is the metric."""
    p, recalled = predictions.p.astype(np.float64, copy=False), predictions.recalled
    return (p - recalled) ** 2 if metric == "brier" else log_losses(p, recalled)


def scored_by(metric: str) -> str:
    """Return the name of the score of single reviews that stands for a metric."""
    return metric if metric in PER_REVIEW else "log_loss"


def require_same_rows(entry: Entry, first: Predictions, other: Predictions | None) -> Predictions:
    """Make sure that a run holds predictions of the same reviews as those of another."""
    if (
        other is None
        or len(other) != len(first)
        or (other.row != first.row).any()
        or (other.recalled != first.recalled).any()
    ):
        raise not_its_own(entry, first.users[0])
    return other


def not_its_own(entry: Entry, user: User) -> ConfigError:
    """Return the error that predictions and scores in a folder belong to different runs."""
    return ConfigError(
        f"{entry.place / PREDICTIONS}: the predictions of user {user} are not of the reviews that "
        "scores.parquet is about; the files are of different runs"
    )
