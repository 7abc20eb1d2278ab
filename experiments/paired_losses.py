"""Paired differences of log loss between evaluations of the same reviews."""

from __future__ import annotations

import numpy as np
import pandas as pd

from srs_eval.api.result import RunResult
from srs_eval.metrics.proper import CLIP
from srs_eval.nouns import FloatArray
from srs_eval.stats.estimate import Estimate, clustered_mean


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
