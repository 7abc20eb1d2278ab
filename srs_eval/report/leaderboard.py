"""Finished runs side by side, from their saved scores: nothing is fitted again.

Runs are compared on the users that each of them could score, and on the same reviews.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from srs_eval.comparison.one_user import clusters_of, review_gaps
from srs_eval.comparison.runs import Run, load_run
from srs_eval.metrics.clusters import clustered_difference
from srs_eval.metrics.resample import bca_interval, resampled_means
from srs_eval.nouns import FloatArray, User
from srs_eval.report.console import interval, number, table
from srs_eval.report.single import ENOUGH_USERS

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

    Parameters
    ----------
    folders : sequence of Path
        Output folders of finished runs. Runs that scored nothing are in no table.
    """
    groups: list[list[Run]] = []
    for run in map(load_run, folders):
        if not run.rows:
            continue
        group = next((group for group in groups if _comparable([*group, run])), None)
        if group is None:
            groups.append([run])
        else:
            group.append(run)
    return [_leaderboard(group) for group in groups]


def paired_difference(run: Run, other: Run, users: Sequence[User]) -> Difference:
    """Mean difference in log loss between two runs on the same reviews.

    With several users it is the mean over users, resampled over users; with one user the
    mean over reviews, with a standard error clustered by card or by day, whichever is larger.

    Returns
    -------
    Difference
        Negative if `run` is better.
    """
    if len(users) == 1:
        return _difference_on_one_user(run, other, users[0])
    gaps = run.values(RANKED_BY, users) - other.values(RANKED_BY, users)
    if np.isnan(gaps).all():
        return Difference(math.nan, math.nan, math.nan)
    means = resampled_means(gaps[:, None])[:, 0]
    return Difference(float(np.nanmean(gaps)), *bca_interval(gaps, means))


def _comparable(runs: Sequence[Run]) -> bool:
    """Whether there is a user of whom all runs scored the same reviews."""
    settings = {(run.summary["data"], run.summary["protocol"]) for run in runs}
    return len(settings) == 1 and len(_shared(runs)) > 0


def _shared(runs: Sequence[Run]) -> list[User]:
    """Users of whom all runs scored the same reviews."""
    return [user for user in runs[0].rows if len({run.rows.get(user) for run in runs}) == 1]


def _leaderboard(group: Sequence[Run]) -> str:
    most = max(len(run.rows) for run in group)
    ranked = [run for run in group if 2 * len(run.rows) >= most]
    users = _shared(ranked)
    ranked = sorted(ranked, key=lambda run: _rank(run.values(RANKED_BY, users)))
    failed = any(run.summary["failed"] for run in ranked)
    rows = []
    for run in ranked:
        row = [_name(run), *_ranking(run, ranked[0], users)]
        row += [number(_mean(run.values(metric, users))) for metric in _BESIDE]
        rows.append([*row, run.summary["failed"]] if failed else row)
    headers = ["algorithm", RANKED_BY, "99 % interval", "behind", "99 % interval", *_BESIDE]
    headers += ["failed"] if failed else []
    notes = [_caption(ranked[0], users, most), table(rows, headers), *_notes(group, ranked, users)]
    return "\n".join(notes)


def _ranking(run: Run, best: Run, users: Sequence[User]) -> list[str]:
    """Log loss with its interval, and how far it is behind the best run."""
    values = run.values(RANKED_BY, users)
    if len(users) == 1:  # the interval over this user's cards and days is in the summary
        of_run = run.summary["metrics"].get(RANKED_BY, {})
        lo, hi = _or_nan(of_run.get("lo")), _or_nan(of_run.get("hi"))
    else:
        lo, hi = bca_interval(values, resampled_means(values[:, None])[:, 0])
    shown = [number(_mean(values)), interval(lo, hi)]
    if np.isnan(values).all():
        return [*shown, "", ""]
    if run is best:
        return [*shown, "best", ""]
    gap = paired_difference(run, best, users)
    return [*shown, f"{gap.mean:+.4f}", interval(gap.lo, gap.hi)]


def _caption(run: Run, users: Sequence[User], most: int) -> str:
    summary = run.summary
    every = f" of {most:,}, those that every run could score" if len(users) < most else ""
    over = "users" if len(users) > 1 else summary["interval_over"]
    return (
        f"{summary['data']}, protocol {summary['protocol']}: {_counted(len(users))}{every}; "
        f"{sum(run.reviews[user] for user in users):,} scored reviews\n"
        f"Means over users; intervals over {over}; behind: the mean paired difference to the "
        "best run\n"
    )


def _notes(group: Sequence[Run], ranked: Sequence[Run], users: Sequence[User]) -> list[str]:
    notes = []
    if any(run.summary["online"] for run in ranked):
        notes.append("* goes on learning while it is tested")
    if 1 < len(users) < ENOUGH_USERS:
        notes.append(f"Fewer than {ENOUGH_USERS} users: take the intervals as a rough guide")
    notes += [
        f"{_name(run)} scored only {_counted(len(run.rows))} and is not ranked"
        for run in group
        if run not in ranked
    ]
    return notes


def _counted(users: int) -> str:
    return "1 user" if users == 1 else f"{users:,} users"


def _name(run: Run) -> str:
    return str(run.summary["label"]) + (" *" if run.summary["online"] else "")


def _rank(values: FloatArray) -> tuple[bool, float]:
    """Put runs without a score last."""
    mean = _mean(values)
    return (math.isnan(mean), 0.0 if math.isnan(mean) else mean)


def _mean(values: FloatArray) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else math.nan


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _difference_on_one_user(run: Run, other: Run, user: User) -> Difference:
    gaps, reviews = review_gaps(run, other, user, RANKED_BY)
    return Difference(*clustered_difference(gaps, *clusters_of(reviews)))
