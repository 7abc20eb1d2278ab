"""The comparison of a run with its baseline in percent, and the baseline of a sweep's job."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from srs_eval.comparison.compare import compare
from srs_eval.comparison.matching import shared_users
from srs_eval.results.files import OUTCOME
from srs_eval.results.folder import is_run
from srs_eval.results.run import Run, job_number, load_run

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

    baseline: Run
    n_users: int  # Number of these users
    of_users: int  # Number of users the run scored
    # One for each metric that both have and that is above 0 for the baseline
    percents: tuple[Percent, ...]


def in_percent(run: Run, baseline: Run) -> AgainstBaseline:
    """Compare two finished runs on the users for whom both scored the same reviews."""
    users = shared_users([run, baseline])
    metrics = [name for name in _IN_PERCENT if name in run.scores and name in baseline.scores]
    percents = []
    if users and metrics:
        verdict = compare([baseline, run], metric=metrics[0], users=users)
        for metric in metrics:
            found = verdict.ratio_to_baseline(len(verdict.runs) - 1, metric)
            lo, hi = found.interval()
            if not math.isnan(found.mean):
                percents.append(Percent(metric, 100 * found.mean, 100 * lo, 100 * hi))
    return AgainstBaseline(baseline, len(users), len(run.rows), tuple(percents))


def first_alike(run: Run, sweep_folder: Path) -> Run | None:
    """Find the first job of a sweep that scored all the reviews of a later job.

    Only jobs with lower numbers are candidates. None if there is no such job, or if it has not
    finished.
    """
    own, _ = job_number(run.place)
    before = [f for f in sweep_folder.iterdir() if 0 <= job_number(f)[0] < own]
    for folder in sorted(before, key=job_number):
        if is_run(folder) and (folder / OUTCOME).is_file():
            other = load_run(folder)
            if run.rows and len(shared_users([run, other])) == len(run.rows):
                return other
    return None
