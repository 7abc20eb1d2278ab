"""From predictions to scores: per user, then over users, each mean with its interval."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from srs_eval.data.reviews import IntArray, User
from srs_eval.evaluation.evaluate import ReviewLog, UserEvaluation
from srs_eval.evaluation.fits import Fit
from srs_eval.metrics.bootstrap import PooledSums, cluster_intervals, pool
from srs_eval.metrics.means import MetricSummary, summarise
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.predictions import Predictions, rows_fingerprint
from srs_eval.metrics.threshold import threshold_rows

Interval = tuple[float, float]


@dataclass(frozen=True)
class ScoredUser:
    """Result for one user, with its scores; `fits` and `log` are as in `UserEvaluation`."""

    user: User
    fits: tuple[Fit, ...]
    log: ReviewLog
    reviews: int  # Scored reviews; 0 where any fold is missing
    rows: str  # Digest of the scored reviews; "" where a fold is missing
    # The panel; NaN where a metric is not defined, and throughout where any fold is missing: the
    # others would be other reviews than those other algorithms are scored on
    values: tuple[float, ...]
    predictions: Predictions | None = None  # Of the folds whose fit worked
    forgotten: int = 0  # Scored reviews that were forgotten; 0 where any fold is missing

    @property
    def is_complete(self) -> bool:
        """Whether no fold is missing."""
        return self.rows != ""


@dataclass(frozen=True)
class Scores:
    """The panel of each user."""

    users: tuple[User, ...]  # Every user with a fit that was not skipped
    reviews: IntArray  # [n_users]: Scored reviews; 0 where any fold of the user is missing
    rows: tuple[str, ...]  # Digest of each user's scored reviews; "" where a fold is missing
    names: tuple[str, ...]  # Metrics
    values: NDArray[np.float64]  # [n_users, n_metrics]: As in `ScoredUser`

    @property
    def complete(self) -> tuple[User, ...]:
        """Users without a missing fold."""
        return tuple(compress(self.users, self.rows))

    @property
    def fingerprint(self) -> str:
        """Digest of which reviews of which users were scored, and how they turned out."""
        pairs = sorted(f"{user} {rows}" for user, rows in zip(self.users, self.rows, strict=True))
        return hashlib.sha256("\n".join(pairs).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class OverUsers:
    """The panel over users, each metric with its intervals."""

    scores: Scores
    metrics: Mapping[str, MetricSummary]  # The panel over the users without a missing fold
    # What the intervals are over: ``users``, or ``cards and days`` of a single user
    interval_over: str
    # Confusion counts and rates at each threshold, over all reviews: see `threshold_rows`. Empty
    # where nothing is pooled
    thresholds: tuple[Mapping[str, float], ...] = ()


def score_user(evaluation: UserEvaluation, panel: Panel) -> ScoredUser:
    """Score what was predicted for one user; nothing is fitted again."""
    p, fits = evaluation.predictions, evaluation.fits
    if p is None or not all(fit.predicts for fit in fits):
        values = (math.nan,) * len(panel.names)
        return ScoredUser(evaluation.user, fits, evaluation.log, 0, "", values, p)
    return ScoredUser(
        user=evaluation.user,
        fits=fits,
        log=evaluation.log,
        reviews=len(p),
        rows=rows_fingerprint(p),
        values=tuple(panel.score(p).values()),
        predictions=p,
        forgotten=len(p) - int(np.count_nonzero(p.recalled)),
    )


def summarise_users(
    scores: Scores,
    panel: Panel,
    of_users: Callable[[], Iterable[Predictions]],
    sums: Callable[[], PooledSums] | None = None,
) -> OverUsers:
    """Summarise the scores of all users, which are in the order of the source.

    `of_users` returns the predictions of the users that are complete, one after the other in the
    same order. It is only called for a single user, and for a panel that wants pooled values.
    `sums` returns the sums of the same users, added up in the same order: several users are pooled
    by these sums instead of predictions, but for metrics that need all rows.
    """
    complete = np.array([rows != "" for rows in scores.rows], bool)
    values, reviews = scores.values[complete], scores.reviews[complete]
    score: Mapping[str, float] = dict.fromkeys(panel.names, math.nan)
    intervals: Mapping[str, Interval] = {}
    of_single_user: Mapping[str, Interval] | None = None
    thresholds: Sequence[Mapping[str, float]] = ()
    over = "users"
    if len(values) == 1:
        user = next(iter(of_users()))
        tally = panel.tally(user)
        score = dict(zip(panel.names, values[0].tolist(), strict=True))
        thresholds = () if tally is None else threshold_rows(tally, panel.biases)
        # Of what is left of several users, cards and days are not resampled: it would look more
        # certain than the failure of the others allows.
        if len(complete) == 1:
            over = "cards and days"
            of_single_user = cluster_intervals(panel, user, tally=tally)
    elif panel.pooled and len(values):
        pooled = pool(sums() if sums else PooledSums(panel, of_users()))
        score, intervals, thresholds = pooled.scores, pooled.intervals, pooled.thresholds
    elif len(values):
        means = zip(panel, reviews @ values / reviews.sum(), strict=True)
        score = {metric.name: float(mean) for metric, mean in means if metric.is_mean}
    metrics = summarise(
        scores.names,
        values,
        reviews,
        score,
        pooled_intervals=intervals,
        single_user=of_single_user,
        bounds={metric.name: metric.bounds for metric in panel},
    )
    return OverUsers(scores, metrics, over, tuple(thresholds))
