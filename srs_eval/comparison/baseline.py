"""The comparison of a run with its baseline in percent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from srs_eval.comparison.compare import compare
from srs_eval.comparison.entry import entry_of
from srs_eval.comparison.matching import shared_users
from srs_eval.runs.folder import JOB, Run, is_run, job_number

# Scores with a natural zero that is perfect, so that a percentage is meaningful.
_IN_PERCENT = ("log_loss", "brier", "smece", "rmse_bins")


@dataclass(frozen=True, slots=True)
class Percent:
    """Difference between two means as a percentage of the baseline's."""

    metric: str
    difference: float  # Negative if the run is better
    # 99 % interval; NaN for a single user if the score is no mean over reviews, or predictions were
    # not saved
    lo: float
    hi: float


@dataclass(frozen=True, slots=True)
class AgainstBaseline:
    """A run against its baseline, on the users for whom both scored the same reviews."""

    baseline: str  # Its label
    n_users: int  # Number of these users
    of_users: int  # Number of users the run scored
    # One for each metric that both have and that is above 0 for the baseline
    percents: tuple[Percent, ...]


def in_percent(run: Run, other: Run) -> AgainstBaseline:
    """Compare two finished runs on the users for whom both scored the same reviews."""
    ours, theirs = entry_of(run), entry_of(other)
    users = shared_users([ours, theirs])
    metrics = [name for name in _IN_PERCENT if name in ours.scores and name in theirs.scores]
    percents = []
    if users and metrics:
        verdict = compare([theirs, ours], metric=metrics[0], users=users)
        for metric in metrics:
            ratio = verdict.ratio_to_baseline(len(verdict.runs) - 1, metric)
            lo, hi = ratio.interval()
            if not math.isnan(ratio.mean):
                percents.append(Percent(metric, 100 * ratio.mean, 100 * lo, 100 * hi))
    return AgainstBaseline(other.facts.label, len(users), len(ours.rows), tuple(percents))


def first_alike(run: Run, sweep: Path) -> Run | None:
    """Return the first job of a sweep, before the run, that scored all its reviews; else None."""
    own, _ = job_number(run.folder)
    jobs = [f for f in sweep.iterdir() if 0 <= job_number(f)[0] < own and (f / JOB).is_file()]
    for folder in sorted(filter(is_run, jobs), key=job_number):
        other = Run.read(folder)
        users = shared_users([entry_of(run), entry_of(other)])
        if users and len(users) == len(run.complete):
            return other
    return None
