"""Models on a single user: differences review by review, alike within cards and days."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import stdtr, stdtrit

from srs_eval.comparison.board import Board, best_of
from srs_eval.comparison.common_rows import same_reviews
from srs_eval.comparison.pairing import Paired
from srs_eval.comparison.runs import Run
from srs_eval.comparison.saved_predictions import (
    PER_REVIEW,
    OwnPredictions,
    SavedPredictions,
    check_same_rows,
    has_predictions,
    losses,
    require_own,
)
from srs_eval.metrics.clusters import LEVEL, clustered_difference
from srs_eval.metrics.intervals import single_user_intervals
from srs_eval.metrics.panel import Panel, default_panel
from srs_eval.metrics.significance import holm
from srs_eval.nouns import FloatArray, IntArray, Predictions, User


def review_gaps(run: Run, other: Run, user: User, metric: str) -> tuple[FloatArray, Predictions]:
    """Difference in score of each review between two runs, and the reviews.

    Raises
    ------
    ConfigError
        If the runs do not hold their own predictions, or not of the same reviews.
    """
    ours, theirs = (SavedPredictions(one.place).read(user) for one in (run, other))
    if ours is None:
        return np.zeros(0), _nothing(user)
    require_own(run, ours)
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

    Intervals are those of each run's summary (from its cards and days), made anew where the
    summary is of other reviews or users as well; pairs are compared review by review where the
    metric is a mean over reviews and predictions were kept, with p-values adjusted over all
    pairs by Holm.
    """
    runs = paired.runs
    mean = paired.scores(metric)[0]
    reviews = _reviews_by_run(paired)
    bounds = [_bounds(paired, number, metric, reviews.get(number)) for number in range(len(runs))]
    lo, hi = np.array(bounds).reshape(len(runs), 2).T
    gap = mean[:, None] - mean[None, :]
    gap_lo, gap_hi, p_value = (np.full(gap.shape, math.nan) for _ in range(3))
    np.fill_diagonal(p_value, 1.0)
    scored = {n: losses(one, metric) for n, one in reviews.items() if metric in PER_REVIEW}
    pairs = [(a, b) for a in range(len(runs)) for b in range(a) if a in scored and b in scored]
    raw = []
    for a, b in pairs:
        ours, theirs, clusters = scored[a], scored[b], clusters_of(reviews[a])
        _, gap_lo[a, b], gap_hi[a, b] = clustered_difference(ours - theirs, *clusters)
        gap_lo[b, a], gap_hi[b, a] = -gap_hi[a, b], -gap_lo[a, b]
        raw.append(clustered_p_value(ours - theirs, clusters))
    for (a, b), p in zip(pairs, holm(raw), strict=True):
        p_value[a, b] = p_value[b, a] = p
    best = best_of(mean, np.array(eligible, np.bool_), sign)
    return Board("users", 1, 1.0, mean, lo, hi, gap, gap_lo, gap_hi, p_value, best, sign)


def _reviews_by_run(paired: Paired) -> dict[int, Predictions]:
    """Read the reviews of the only user, for the runs that kept predictions."""
    (user,) = paired.users
    kept = [n for n, run in enumerate(paired.runs) if has_predictions(run)]
    if not kept:
        return {}
    files = [OwnPredictions(paired.runs[n]) for n in kept]
    found = same_reviews(files, user, restricted=user in paired.restricted)
    return dict(zip(kept, found, strict=True))


def _bounds(
    paired: Paired, number: int, metric: str, reviews: Predictions | None
) -> tuple[float, float]:
    """Interval of a run's score: from its summary, or made anew if that is of something else."""
    run, (user,) = paired.runs[number], paired.users
    if len(run.rows) == 1 and user not in paired.restricted:
        of_metric = run.summary.get("metrics", {}).get(metric, {})
        return _or_nan(of_metric.get("lo")), _or_nan(of_metric.get("hi"))
    known = [one for one in default_panel() if one.name == metric]
    if reviews is None or not known:
        return math.nan, math.nan
    return single_user_intervals(Panel(known), reviews)[metric]


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
