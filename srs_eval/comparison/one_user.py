"""Models on a single user: differences review by review, alike within cards and days."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from srs_eval.comparison.board import Board, board_of_pairs
from srs_eval.comparison.common_rows import same_reviews
from srs_eval.comparison.pairing import Paired
from srs_eval.comparison.standing import Rules
from srs_eval.metrics.intervals import single_user_intervals
from srs_eval.metrics.panel import Panel, default_panel
from srs_eval.nouns import FloatArray, IntArray, Predictions, User
from srs_eval.results.run import Run
from srs_eval.results.saved_predictions import (
    PER_REVIEW,
    OwnPredictions,
    has_predictions,
    losses,
)
from srs_eval.stats.estimate import Estimate, clustered_mean


def clusters_of(reviews: Predictions) -> list[IntArray]:
    """Name what reviews of one user are alike in: their card and, if it is known, their day."""
    return [reviews.card] if reviews.day is None else [reviews.card, reviews.day]


def board_of_one(paired: Paired, metric: str, scores: FloatArray, rules: Rules) -> Board:
    """Make the leaderboard of a single user.

    Intervals are those of each run's summary (from its cards and days), made anew where the
    summary is of other reviews or users as well; pairs are compared review by review where the
    metric is a mean over reviews and predictions were kept.
    """
    runs = paired.runs
    reviews = reviews_by_run(runs, paired.users[0], restricted=bool(paired.restricted))
    bounds = [_bounds(paired, number, metric, reviews.get(number)) for number in range(len(runs))]
    scored = {n: losses(one, metric) for n, one in reviews.items() if metric in PER_REVIEW}
    mean = scores[0]
    pairs = [
        [
            _difference(scored[a], scored[b], reviews[a])
            if a in scored and b in scored
            else Estimate(float(mean[a] - mean[b]))
            for b in range(a)
        ]
        for a in range(len(runs))
    ]
    intervals = np.array(bounds).reshape(len(runs), 2)
    return board_of_pairs("users", 1.0, mean, intervals, pairs, rules, scores)


def _difference(ours: FloatArray, theirs: FloatArray, reviews: Predictions) -> Estimate:
    size = float(max(np.abs(ours).max(), np.abs(theirs).max()))
    return clustered_mean(ours - theirs, *clusters_of(reviews), size=size)


def reviews_by_run(
    runs: Sequence[Run], user: User, *, restricted: bool = False
) -> dict[int, Predictions]:
    """Read the reviews of a user, in the same order for all runs that kept predictions."""
    kept = [n for n, run in enumerate(runs) if has_predictions(run)]
    if not kept:
        return {}
    found = same_reviews([OwnPredictions(runs[n]) for n in kept], user, restricted=restricted)
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


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else float(value)
