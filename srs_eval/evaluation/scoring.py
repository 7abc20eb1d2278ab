"""From predictions to scores: per user, then over users, each mean with its interval."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from srs_eval.data.reviews import FloatArray, IntArray, User
from srs_eval.evaluation.evaluate import EvaluateUser, ReviewLog, UserEvaluation
from srs_eval.evaluation.fits import Fit
from srs_eval.metrics.bootstrap import GROUPS, single_user_intervals
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.pooled import PooledSums, pool
from srs_eval.metrics.predictions import Predictions, rows_fingerprint
from srs_eval.metrics.summary import MetricSummary, summarise
from srs_eval.metrics.threshold import threshold_rows

OfUsers = Callable[[], Iterable[Predictions]]
Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class EvaluateAndScore:
    """Evaluate a user and score the predictions, in the process that does the work."""

    evaluate: EvaluateUser
    panel: Panel

    def __call__(self, user: User, tick: Callable[..., None] = lambda *_: None) -> ScoredUser:
        """Evaluate one user, calling `tick` after each fold."""
        return score_user(self.evaluate(user, tick), self.panel)


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class OverUsers:
    """The panel over users, each metric with its intervals."""

    scores: Scores
    metrics: Mapping[str, MetricSummary]  # The panel over the users without a missing fold
    # What the intervals are over: ``users``, or ``cards and days`` of a single user. It also says
    # where pooled scores are over groups of users
    interval_over: str
    # Confusion counts and rates at each threshold, over all reviews: see `threshold_rows`. Empty
    # where nothing is pooled
    thresholds: tuple[Mapping[str, float], ...] = ()


def score_user(evaluation: UserEvaluation, panel: Panel) -> ScoredUser:
    """Score what was predicted for one user; nothing is fitted again."""
    predictions = evaluation.predictions
    reviews, rows, values = 0, "", (math.nan,) * len(panel.names)
    forgotten = 0
    if predictions is not None and all(fit.predicts for fit in evaluation.fits):
        values = tuple(panel.score(predictions).values())
        rows = rows_fingerprint(predictions)
        reviews = len(predictions)
        forgotten = reviews - int(np.count_nonzero(predictions.recalled))
    return ScoredUser(
        evaluation.user,
        evaluation.fits,
        evaluation.log,
        reviews,
        rows,
        values,
        predictions,
        forgotten,
    )


def summarise_users(
    scores: Scores,
    panel: Panel,
    of_users: OfUsers,
    sums: Callable[[], PooledSums] | None = None,
) -> OverUsers:
    """Summarise the scores of all users, which are in the order of the source.

    `of_users` returns the predictions of the users that are complete, one after the other in the
    same order. It is only called for a single user, and for a panel that wants pooled values.
    `sums` returns the sums of the same users, added up in the same order: several users are pooled
    by these sums instead of predictions, but for metrics that need all rows.
    """
    complete = np.array([rows != "" for rows in scores.rows], bool)
    values, reviews = scores.values, scores.reviews
    together = _Together(dict.fromkeys(panel.names, math.nan))
    if complete.any():
        if not complete.all():
            values, reviews = values[complete], reviews[complete]
        is_alone = len(complete) == 1
        together = _together(values, reviews, panel, of_users, sums, is_alone=is_alone)
    over = "users" if together.of_single_user is None else "cards and days"
    if together.are_grouped:
        over = f"users (of pooled scores: {GROUPS:,} groups of users)"
    metrics = summarise(
        scores.names,
        values,
        reviews,
        together.scores,
        pooled_intervals=together.intervals,
        single_user=together.of_single_user,
        bounds={metric.name: metric.bounds for metric in panel},
    )
    return OverUsers(scores, metrics, over, together.thresholds)


@dataclass(frozen=True, slots=True)
class _Together:
    """What is known of the reviews of all complete users together."""

    scores: Mapping[str, float]
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    of_single_user: Mapping[str, Interval] | None = None
    are_grouped: bool = False
    thresholds: tuple[Mapping[str, float], ...] = ()


def _together(
    values: FloatArray,
    reviews: IntArray,
    panel: Panel,
    of_users: OfUsers,
    sums: Callable[[], PooledSums] | None,
    *,
    is_alone: bool,
) -> _Together:
    """Score all reviews of complete users together, as far as the panel wants it.

    A single user's cards and days are resampled instead; where that user is what is left of
    several, nothing is: it would look more certain than the failure of the others allows.
    """
    if len(values) == 1:
        user = next(iter(of_users()))
        tally = panel.tally(user)
        return _Together(
            dict(zip(panel.names, values[0].tolist(), strict=True)),
            of_single_user=single_user_intervals(panel, user) if is_alone else None,
            thresholds=() if tally is None else threshold_rows(tally, panel.biases),
        )
    if panel.pooled:
        pooled = pool(sums() if sums else PooledSums(panel, of_users()))
        return _Together(
            pooled.scores,
            pooled.intervals,
            are_grouped=pooled.are_grouped,
            thresholds=pooled.thresholds,
        )
    weighted = reviews @ values / reviews.sum()
    return _Together(
        {
            metric.name: float(mean)
            for metric, mean in zip(panel, weighted, strict=True)
            if metric.is_mean
        }
    )
