"""Paired differences of log loss between evaluations of the same reviews."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from srs_eval.api.result import RunResult
from srs_eval.evaluation.evaluate import EvaluateUser
from srs_eval.metrics.proper import CLIP, LogLoss
from srs_eval.nouns import (
    Algorithm,
    EvaluationProtocol,
    Fit,
    FloatArray,
    Predictions,
    Source,
    User,
)
from srs_eval.stats.estimate import Estimate, clustered_mean, mean_of_users

_SEED = 2026


@dataclass(frozen=True)
class Scored:
    """Losses of the scored reviews by user, with their predictions, and the fits behind them."""

    predictions: Mapping[User, Predictions]
    losses: Mapping[User, FloatArray]
    fits: Mapping[User, Sequence[Fit]]

    @property
    def log_loss(self) -> float:
        """Mean over users of the mean loss."""
        return float(np.mean([loss.mean() for loss in self.losses.values()]))

    def less(self, other: Scored) -> Estimate:
        """Estimate the difference of log loss: over users, or over cards and days of one user."""
        pairs = {user: loss - other.losses[user] for user, loss in self.losses.items()}
        if len(pairs) > 1:
            return mean_of_users(np.array([pair.mean() for pair in pairs.values()]))
        ((user, pair),) = pairs.items()
        own = self.predictions[user]
        assert own.day is not None
        return clustered_mean(pair, own.card, own.day)


def score(
    source: Source, algorithm: Algorithm, protocol: EvaluationProtocol, *, fewest: int
) -> Scored:
    """Evaluate the users of a source who have at least so many scored reviews.

    Raises
    ------
    SystemExit
        If a fit failed, whose reviews would be missing.
    """
    work = EvaluateUser(source, algorithm, protocol, _SEED, curves=0)
    results = {user: work(user) for user in source.users()}
    found = {
        user: result.predictions
        for user, result in results.items()
        if result.predictions is not None and len(result.predictions) >= fewest
    }
    fits = {user: results[user].fits for user in found}
    missing = [fit for own in fits.values() for fit in own if not fit.predicts]
    if missing:
        raise SystemExit(f"{algorithm.name}: {missing[0]}")
    losses = {user: LogLoss().per_review(own) for user, own in found.items()}
    return Scored(found, losses, fits)


def losses(p: FloatArray, recalled: FloatArray) -> FloatArray:
    """Compute the log loss of each review."""
    exact = np.clip(np.asarray(p, np.float64), CLIP, 1 - CLIP)
    return -np.log(np.where(recalled, exact, 1 - exact))


def scored(result: RunResult) -> pd.DataFrame:
    """Return the predictions of a result with the log loss of each.

    Raises
    ------
    SystemExit
        If a fit failed, whose reviews would be missing.
    """
    failed = [fit.reason for fit in result.fitted if fit.status == "failed"]
    if failed:
        raise SystemExit(f"{result.facts.label}: {failed[0]}")
    frame = result.predictions.copy()
    frame["loss"] = losses(frame["p"].to_numpy(), frame["recalled"].to_numpy())
    return frame.sort_values(["user", "row"], ignore_index=True)


def difference(one: pd.DataFrame, other: pd.DataFrame) -> Estimate:
    """Estimate the mean difference of loss, with reviews correlated within cards and days."""
    if not one[["user", "row"]].equals(other[["user", "row"]]):
        raise ValueError("the evaluations scored different reviews")
    clusters = (one.groupby(["user", name]).ngroup().to_numpy() for name in ("card", "day"))
    return clustered_mean((one["loss"] - other["loss"]).to_numpy(), *clusters)


def with_interval(estimate: Estimate) -> str:
    """Format a difference with its 99 % interval."""
    if estimate.is_zero:
        return "0"
    low, high = estimate.interval()
    return f"{estimate.mean:+.4f} [{low:+.4f}, {high:+.4f}]"


def settled(change: Estimate) -> bool:
    """Return whether the 99 % interval of a difference excludes 0."""
    return bool(not change.is_zero and change.p_value < 0.01)
