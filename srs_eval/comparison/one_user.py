"""Models on a single user: differences review by review, alike within cards and days."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import stdtr, stdtrit

from srs_eval.comparison.board import Board, best_of
from srs_eval.comparison.pairing import Paired
from srs_eval.comparison.runs import Run
from srs_eval.comparison.saved_predictions import (
    SavedPredictions,
    check_same_rows,
    has_predictions,
    losses,
)
from srs_eval.metrics.clusters import LEVEL, clustered_difference
from srs_eval.metrics.significance import holm
from srs_eval.nouns import FloatArray, IntArray, Predictions, User


def review_gaps(run: Run, other: Run, user: User, metric: str) -> tuple[FloatArray, Predictions]:
    """Difference in score of each review between two runs, and the reviews.

    Raises
    ------
    ConfigError
        If the runs do not hold predictions of the same reviews.
    """
    ours, theirs = (SavedPredictions(one.place).read(user) for one in (run, other))
    if ours is None:
        return np.zeros(0), _nothing(user)
    theirs = check_same_rows(other, ours, theirs)
    return losses(ours, metric) - losses(theirs, metric), ours


def clusters_of(reviews: Predictions) -> list[IntArray]:
    """Name what reviews of one user are alike in: their card and, if it is known, their day."""
    return [reviews.card] if reviews.day is None else [reviews.card, reviews.day]


def clustered_p_value(gaps: FloatArray, clusters: Sequence[IntArray]) -> float:
    """Two-sided p-value of a mean difference, the larger of those by card and by day.

    Returns
    -------
    float
        1 if the difference is 0 throughout; NaN with fewer than two clusters.
    """
    if not len(gaps) or not gaps.any():
        return 1.0 if len(gaps) else math.nan
    found = []
    for cluster in clusters:
        freedom = len(np.unique(cluster)) - 1
        mean, _, hi = clustered_difference(gaps, cluster)
        if freedom < 1 or math.isnan(hi):
            return math.nan
        error = (hi - mean) / float(stdtrit(freedom, (1 + LEVEL) / 2))
        found.append(2 * float(stdtr(freedom, -abs(mean) / error)) if error > 0 else 0.0)
    return max(found)


def board_of_one(
    paired: Paired, metric: str, *, sign: float = 1.0, eligible: Sequence[bool]
) -> Board:
    """Make the leaderboard of a single user.

    Intervals are those of each run's summary (from its cards and days); pairs are compared
    review by review where the metric is a mean over reviews and predictions were kept, with
    p-values adjusted over all pairs by Holm.
    """
    (user,) = paired.users
    runs = paired.runs
    mean = paired.scores(metric)[0]
    bounds = [run.summary.get("metrics", {}).get(metric, {}) for run in runs]
    lo, hi = (np.array([_or_nan(of.get(end)) for of in bounds]) for end in ("lo", "hi"))
    gap = mean[:, None] - mean[None, :]
    gap_lo, gap_hi, p_value = (np.full(gap.shape, math.nan) for _ in range(3))
    np.fill_diagonal(p_value, 1.0)
    scored = _losses_by_review(runs, user, metric)
    pairs = [(a, b) for a in range(len(runs)) for b in range(a) if a in scored and b in scored]
    raw = []
    for a, b in pairs:
        (ours, reviews), (theirs, _) = scored[a], scored[b]
        clusters = clusters_of(reviews)
        _, gap_lo[a, b], gap_hi[a, b] = clustered_difference(ours - theirs, *clusters)
        gap_lo[b, a], gap_hi[b, a] = -gap_hi[a, b], -gap_lo[a, b]
        raw.append(clustered_p_value(ours - theirs, clusters))
    for (a, b), p in zip(pairs, holm(raw), strict=True):
        p_value[a, b] = p_value[b, a] = p
    best = best_of(mean, np.array(eligible, np.bool_), sign)
    return Board("users", 1, 1.0, mean, lo, hi, gap, gap_lo, gap_hi, p_value, best, sign)


def _losses_by_review(
    runs: Sequence[Run], user: User, metric: str
) -> dict[int, tuple[FloatArray, Predictions]]:
    """Scores of each review for the runs that kept predictions; none if it is no such metric."""
    found: dict[int, tuple[FloatArray, Predictions]] = {}
    first: Predictions | None = None
    for number, run in enumerate(runs):
        if metric in ("log_loss", "brier") and has_predictions(run):
            reviews = SavedPredictions(run.place).read(user)
            if reviews is None:
                continue
            first = first if first is not None else reviews
            reviews = check_same_rows(run, first, reviews)
            found[number] = (losses(reviews, metric), reviews)
    return found


def _nothing(user: User) -> Predictions:
    none = np.zeros(0, np.int64)
    return Predictions(
        users=(user,),
        user=none,
        fold=none,
        row=none,
        card=none,
        p=np.zeros(0),
        recalled=np.zeros(0, np.bool_),
    )


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else float(value)
