"""How a run compares with a baseline, in percent of the baseline's score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from srs_eval.comparison.one_user import clusters_of, reviews_by_run
from srs_eval.nouns import User
from srs_eval.results.files import OUTCOME
from srs_eval.results.folder import is_run
from srs_eval.results.run import Run, job_number, load_run
from srs_eval.results.saved_predictions import PER_REVIEW, losses
from srs_eval.stats.estimate import Estimate, ratio_of_clustered_sums, ratio_of_sums

# Scores with a natural zero that is perfect, so that a percentage means something.
IN_PERCENT = ("log_loss", "brier", "smece", "rmse_bins")


@dataclass(frozen=True, slots=True)
class Percent:
    """Difference between two means, as a percentage of the baseline's.

    Attributes
    ----------
    difference : float
        Negative if the run is better.
    lo, hi : float
        99 % interval; NaN for a single user where the score is no mean over reviews, or
        predictions were not kept.
    """

    metric: str
    difference: float
    lo: float
    hi: float


@dataclass(frozen=True, slots=True)
class AgainstBaseline:
    """A run against its baseline, on the users of whom both scored the same reviews.

    Attributes
    ----------
    n_users : int
        How many these are.
    of_users : int
        How many the run scored.
    percents : tuple of Percent
        One for each metric that both have and that is above 0 for the baseline.
    """

    baseline: Run
    n_users: int
    of_users: int
    percents: tuple[Percent, ...]


def in_percent(run: Run, baseline: Run) -> AgainstBaseline:
    """Compare two finished runs on the users of whom both scored the same reviews."""
    users = [user for user, rows in run.rows.items() if rows == baseline.rows.get(user)]
    found = [_percent(run, baseline, metric, users) for metric in IN_PERCENT]
    percents = tuple(percent for percent in found if percent is not None)
    return AgainstBaseline(baseline, len(users), len(run.rows), percents)


def first_alike(run: Run, sweep_folder: Path) -> Run | None:
    """Find the first job of a sweep that has scored all the reviews that a later one has.

    Parameters
    ----------
    run : Run
        Any job of the sweep; only those with lower numbers are looked at.
    sweep_folder : Path
        Folder of all jobs.

    Returns
    -------
    Run or None
        None if there is no such job, or if it has not finished.
    """
    own, _ = job_number(run.place)
    before = [f for f in sweep_folder.iterdir() if 0 <= job_number(f)[0] < own]
    for folder in sorted(before, key=job_number):
        if is_run(folder) and (folder / OUTCOME).is_file():
            other = load_run(folder)
            if run.rows and all(rows == other.rows.get(u) for u, rows in run.rows.items()):
                return other
    return None


def _percent(run: Run, baseline: Run, metric: str, users: Sequence[User]) -> Percent | None:
    ours, theirs = run.values(metric, users), baseline.values(metric, users)
    known = ~np.isnan(ours) & ~np.isnan(theirs)
    ours, theirs = ours[known], theirs[known]
    if not len(theirs) or theirs.sum() <= 0:
        return None
    found = (
        _ratio_of_one(run, baseline, metric, users[0])
        if len(users) == 1
        else ratio_of_sums(ours - theirs, theirs, size=1.0)
    )
    lo, hi = found.interval()
    return Percent(metric, 100 * float(ours.sum() / theirs.sum() - 1), 100 * lo, 100 * hi)


def _ratio_of_one(run: Run, baseline: Run, metric: str, user: User) -> Estimate:
    """Estimate a ratio of means over reviews, alike within cards and days."""
    reviews = reviews_by_run([run, baseline], user) if metric in PER_REVIEW else {}
    if len(reviews) < 2:
        return Estimate(math.nan)
    ours, theirs = losses(reviews[0], metric), losses(reviews[1], metric)
    return ratio_of_clustered_sums(ours - theirs, theirs, *clusters_of(reviews[0]), size=1.0)
