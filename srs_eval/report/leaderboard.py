"""Finished runs side by side, from their saved scores: nothing is fitted again.

Only runs that scored the same reviews share a table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from scipy.special import ndtri

from srs_eval.metrics.proper import LogLoss
from srs_eval.metrics.resample import LEVEL, bca_interval, resampled_means
from srs_eval.nouns import FloatArray, Predictions
from srs_eval.predictions import select
from srs_eval.report.console import interval, number, table
from srs_eval.report.files import SCORES, SUMMARY, load_predictions, read_json

RANKED_BY = "log_loss"
_BESIDE = ("normalized_entropy", "brier_skill", "smece", "auc", "rmse_bins")


@dataclass(frozen=True, slots=True)
class Difference:
    """A mean paired difference with its 99 % interval; NaN where it cannot be had."""

    mean: float
    lo: float
    hi: float


def leaderboards(folders: Sequence[Path]) -> list[str]:
    """One table for each set of runs that scored the same reviews, best run first.

    Runs that scored nothing are in none.

    Parameters
    ----------
    folders : sequence of Path
        Output folders of finished runs.
    """
    groups: dict[tuple[str, str], list[Path]] = {}
    for folder in folders:
        summary = read_json(folder / SUMMARY)
        if summary["reviews"]:
            groups.setdefault((summary["data"], summary["rows_fingerprint"]), []).append(folder)
    return [_leaderboard(group) for group in groups.values()]


def paired_difference(folder: Path, other: Path) -> Difference:
    """Mean difference in log loss between two runs on the same reviews.

    With several users it is the mean over users, resampled over users; with one user the
    mean over reviews, with a standard error clustered by card.

    Returns
    -------
    Difference
        Negative if the run in `folder` is better.
    """
    ours, theirs = _user_scores(folder), _user_scores(other)
    users = [user for user in ours if user in theirs]
    if len(users) == 1:
        return _difference_over_cards(folder, other)
    differences = np.array([ours[user] - theirs[user] for user in users])
    defined = differences[~np.isnan(differences)]
    if not len(defined):
        return Difference(math.nan, math.nan, math.nan)
    means = resampled_means(differences[:, None])[:, 0]
    return Difference(float(defined.mean()), *bca_interval(differences, means))


def _leaderboard(folders: Sequence[Path]) -> str:
    summaries = {folder: read_json(folder / SUMMARY) for folder in folders}
    ranked = sorted(folders, key=lambda folder: _rank(summaries[folder]))
    best = ranked[0]
    failed = any(summary["failed"] for summary in summaries.values())
    rows = []
    for folder in ranked:
        summary = summaries[folder]
        metric = summary["metrics"].get(RANKED_BY, {})
        row = [
            summary["label"] + (" *" if summary["online"] else ""),
            number(_score(summary, RANKED_BY)),
            interval(_or_nan(metric.get("lo")), _or_nan(metric.get("hi"))),
            *_behind(folder, best),
            *(number(_score(summary, name)) for name in _BESIDE),
        ]
        rows.append([*row, summary["failed"]] if failed else row)
    headers = ["algorithm", RANKED_BY, "99 % interval", "behind", "99 % interval", *_BESIDE]
    if failed:
        headers.append("failed")
    first = summaries[best]
    users = "1 user" if first["users"] == 1 else f"{first['users']:,} users"
    caption = (
        f"{first['data']}, protocol {first['protocol']}: {users}, "
        f"{first['reviews']:,} scored reviews\n"
        f"Means over users; intervals over {first['interval_over']}; behind: the mean paired "
        "difference to the best run"
    )
    online = any(summary["online"] for summary in summaries.values())
    note = "\n* goes on learning while it is tested" if online else ""
    return f"{caption}\n\n{table(rows, headers)}{note}"


def _behind(folder: Path, best: Path) -> tuple[str, str]:
    """Mean paired difference to the best run and its interval, as printed."""
    if folder == best:
        return "best", ""
    gap = paired_difference(folder, best)
    mean = number(gap.mean) if math.isnan(gap.mean) else f"{gap.mean:+.4f}"
    return mean, interval(gap.lo, gap.hi)


def _rank(summary: dict[str, Any]) -> tuple[bool, float]:
    """Sort by score, runs without one last."""
    score = _score(summary, RANKED_BY)
    return math.isnan(score), score


def _score(summary: dict[str, Any], name: str) -> float:
    return _or_nan(summary["metrics"].get(name, {}).get("mean_users"))


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _user_scores(folder: Path) -> dict[int | str, float]:
    scores = pq.read_table(folder / SCORES).to_pydict()
    values = scores.get(RANKED_BY, [None] * len(scores["user"]))
    return dict(zip(scores["user"], map(_or_nan, values), strict=True))


def _difference_over_cards(folder: Path, other: Path) -> Difference:
    ours, theirs = _in_log_order(folder), _in_log_order(other)
    gaps: FloatArray = LogLoss().per_review(ours) - LogLoss().per_review(theirs)
    mean = float(gaps.mean())
    _, cluster = np.unique(ours.card, return_inverse=True)
    residuals = np.bincount(cluster, gaps - mean)
    cards = len(residuals)
    if cards < 2:
        return Difference(mean, math.nan, math.nan)
    error = math.sqrt(cards / (cards - 1) * float(residuals @ residuals)) / len(gaps)
    half = float(ndtri((1 + LEVEL) / 2)) * error
    return Difference(mean, mean - half, mean + half)


def _in_log_order(folder: Path) -> Predictions:
    """Predictions of a run on one user, so that those of two runs stand side by side."""
    predictions = load_predictions(folder)
    return select(predictions, np.argsort(predictions.row))
