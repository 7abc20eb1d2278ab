"""Models on a single user: differences between reviews, clustered by card and by day."""

from __future__ import annotations

import math

import numpy as np

from srs_eval.comparison.leaderboard import Leaderboard, Rules
from srs_eval.comparison.pairing import Paired
from srs_eval.comparison.predictions import PER_REVIEW, losses
from srs_eval.comparison.restriction import SameReviews
from srs_eval.data.reviews import FloatArray, IntArray
from srs_eval.metrics.bootstrap import single_user_intervals
from srs_eval.metrics.means import Estimate, clustered_mean
from srs_eval.metrics.panel import Panel, default_panel
from srs_eval.metrics.predictions import Predictions


def leaderboard_of_one(
    paired: Paired, metric: str, scores: FloatArray, rules: Rules
) -> Leaderboard:
    """Compute the leaderboard of a single user.

    Intervals are those of each run's summary (over its cards and days), computed anew where the
    summary is of other reviews or more users. Pairs are compared review by review if the metric
    is a mean over reviews and predictions were saved.
    """
    runs = paired.runs
    reviews = SameReviews(runs, paired.restricted).read(paired.users[0])
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
    lo, hi = np.array(bounds).T
    return Leaderboard("users", 1.0, mean, lo, hi, pairs, scores, rules)


def _clusters(reviews: Predictions) -> list[IntArray]:
    """Return the clusters of one user's reviews: cards and, if they were saved, days."""
    return [reviews.card] if reviews.day is None else [reviews.card, reviews.day]


def _difference(ours: FloatArray, theirs: FloatArray, reviews: Predictions) -> Estimate:
    size = float(max(np.abs(ours).max(), np.abs(theirs).max()))
    return clustered_mean(ours - theirs, *_clusters(reviews), size=size)


def _bounds(
    paired: Paired, number: int, metric: str, reviews: Predictions | None
) -> tuple[float, float]:
    """Return the interval of a run's score, of its summary if that is of the same reviews."""
    run, (user,) = paired.runs[number], paired.users
    if len(run.rows) == 1 and user not in paired.restricted:
        known = run.facts.metrics.get(metric)
        return (math.nan, math.nan) if known is None else (known.lo, known.hi)
    panel = [one for one in default_panel() if one.name == metric]
    if reviews is None or not panel:
        return math.nan, math.nan
    return single_user_intervals(Panel(panel), reviews)[metric]
