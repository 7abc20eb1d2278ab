"""From predictions to scores: per user, then over users, each mean with its interval."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from srs_eval.evaluate import EvaluateUser, ReviewLog, UserEvaluation
from srs_eval.metrics.intervals import single_user_intervals
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.pooled import pool
from srs_eval.metrics.sketch import ReviewMean
from srs_eval.metrics.summary import MetricSummary, summarise
from srs_eval.nouns import Fit, FitStatus, IntArray, Predictions, User
from srs_eval.predictions import rows_fingerprint

OfUsers = Callable[[], Iterable[Predictions]]


@dataclass(frozen=True, slots=True)
class ScoredUser:
    """What came of one user, and how it scored.

    Attributes
    ----------
    fits, log
        As in `UserEvaluation`.
    reviews : int
        Scored reviews; 0 where any fold is missing.
    rows : str
        Digest of the scored reviews; "" where a fold is missing.
    values : tuple of float
        The panel; NaN where a metric is not defined, and throughout where any fold is
        missing: the others would be other reviews than those other algorithms are scored on.
    predictions : Predictions or None
        Of the folds whose fit worked. Millions of rows for many users: see `put_away`.
    """

    user: User
    fits: tuple[Fit, ...]
    log: ReviewLog
    reviews: int
    rows: str
    values: tuple[float, ...]
    predictions: Predictions | None = None

    @property
    def is_complete(self) -> bool:
        """Whether no fold is missing."""
        return self.rows != ""

    def put_away(self) -> ScoredUser:
        """Let go of the predictions; what is left is small."""
        return replace(self, predictions=None)


@dataclass(frozen=True, slots=True)
class EvaluateAndScore:
    """Evaluate a user and score what came of it, where the work is done."""

    evaluate: EvaluateUser
    panel: Panel

    def __call__(self, user: User, tick: Callable[[], None] = lambda: None) -> ScoredUser:
        """Evaluate one user, calling `tick` after each fold."""
        return score_user(self.evaluate(user, tick), self.panel)


@dataclass(frozen=True, slots=True)
class Scores:
    """The panel of each user.

    Attributes
    ----------
    users : tuple of user names
        Every user with a fit that was not skipped.
    reviews : int64 [n_users]
        Scored reviews; 0 where any fold of the user is missing.
    rows : tuple of str
        Digest of each user's scored reviews; "" where a fold is missing.
    names : tuple of str
        Metrics.
    values : float64 [n_users, n_metrics]
        As in `ScoredUser`.
    """

    users: tuple[User, ...]
    reviews: IntArray
    rows: tuple[str, ...]
    names: tuple[str, ...]
    values: NDArray[np.float64]

    @property
    def fingerprint(self) -> str:
        """Digest of which reviews of which users were scored, and how they turned out."""
        pairs = sorted(f"{user} {rows}" for user, rows in zip(self.users, self.rows, strict=True))
        return hashlib.sha256("\n".join(pairs).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All that is known of an algorithm on a set of users, apart from its predictions.

    Attributes
    ----------
    reviews_read : int
        Reviews in the logs, scored or not.
    interval_over : str
        What was resampled for the intervals: ``users``, or ``cards`` of a single user.
    """

    fits: tuple[Fit, ...]
    scores: Scores
    summary: Mapping[str, MetricSummary]
    reviews_read: int
    left_out: Mapping[str, int]
    data_fingerprint: str
    interval_over: str

    @property
    def users_scored(self) -> int:
        """Count the users without a missing fold, which is whom the summary is about."""
        return sum(rows != "" for rows in self.scores.rows)

    @property
    def reviews_scored(self) -> int:
        """Count the scored reviews of these users."""
        return int(self.scores.reviews.sum())

    def count(self, status: FitStatus) -> int:
        """Count the fits of a status."""
        return sum(fit.status == status for fit in self.fits)


def score_user(evaluation: UserEvaluation, panel: Panel) -> ScoredUser:
    """Score what was predicted for one user; nothing is fitted again."""
    predictions = evaluation.predictions
    reviews, rows, values = 0, "", (math.nan,) * len(panel.names)
    if predictions is not None and all(fit.predicts for fit in evaluation.fits):
        values = tuple(panel.score(predictions).values())
        rows = rows_fingerprint(predictions)
        reviews = len(predictions)
    return ScoredUser(
        evaluation.user, evaluation.fits, evaluation.log, reviews, rows, values, predictions
    )


def score_evaluations(evaluations: Sequence[UserEvaluation], panel: Panel) -> Evaluation:
    """Score evaluations that are in memory.

    Parameters
    ----------
    evaluations : sequence of UserEvaluation
        One per user, in the order of the source.
    panel : Panel
        What to compute.
    """
    users = [score_user(evaluation, panel) for evaluation in evaluations]
    complete = [u.predictions for u in users if u.is_complete and u.predictions is not None]
    return summarise_users(users, panel, lambda: complete)


def summarise_users(users: Sequence[ScoredUser], panel: Panel, of_users: OfUsers) -> Evaluation:
    """Put the scores of all users together.

    Parameters
    ----------
    users : sequence of ScoredUser
        In the order of the source; their predictions are not looked at.
    panel : Panel
        What was computed.
    of_users : callable
        Fetches the predictions of the users that are complete, one after the other in the same
        order. Only called for a single user, and for a panel that wants pooled values.
    """
    scores = _scores(users, panel)
    summary, interval_over = _summary(scores, panel, of_users)
    left_out: Counter[str] = Counter()
    for user in users:
        left_out.update(user.log.left_out)
    fingerprints = "".join(user.log.fingerprint for user in users)
    return Evaluation(
        fits=tuple(fit for user in users for fit in user.fits),
        scores=scores,
        summary=summary,
        reviews_read=sum(user.log.reviews for user in users),
        left_out=dict(left_out),
        data_fingerprint=hashlib.sha256(fingerprints.encode()).hexdigest()[:16],
        interval_over=interval_over,
    )


def _scores(users: Sequence[ScoredUser], panel: Panel) -> Scores:
    tried = [user for user in users if any(fit.status != "skipped" for fit in user.fits)]
    values = np.array([user.values for user in tried]).reshape(len(tried), len(panel.names))
    reviews = np.array([user.reviews for user in tried], np.int64)
    rows = tuple(user.rows for user in tried)
    return Scores(tuple(user.user for user in tried), reviews, rows, panel.names, values)


def _summary(
    scores: Scores, panel: Panel, of_users: OfUsers
) -> tuple[Mapping[str, MetricSummary], str]:
    """Summarise over users; with a single one, resample that user's cards instead."""
    complete = np.array([rows != "" for rows in scores.rows], bool)
    if not complete.any():
        nothing = dict.fromkeys(panel.names, math.nan)
        return summarise(scores.names, scores.values, scores.reviews, nothing), "users"
    values, reviews = scores.values[complete], scores.reviews[complete]
    if len(scores.users) == 1:
        only = next(iter(of_users()))
        return summarise(
            scores.names,
            values,
            reviews,
            dict(zip(scores.names, values[0].tolist(), strict=True)),
            single_user=single_user_intervals(panel, only),
        ), "cards and days"
    pooled, intervals = _pooled(values, reviews, panel, of_users)
    summary = summarise(scores.names, values, reviews, pooled, pooled_intervals=intervals)
    return summary, "users"


def _pooled(
    values: NDArray[np.float64], reviews: IntArray, panel: Panel, of_users: OfUsers
) -> tuple[dict[str, float], dict[str, tuple[float, float]]]:
    """Score the predictions of all users put together, as far as the panel wants it."""
    if len(values) == 1:
        return dict(zip(panel.names, values[0].tolist(), strict=True)), {}
    if panel.pooled:
        pooled = pool(panel, of_users())
        return pooled.scores, pooled.intervals
    weighted = reviews @ values / reviews.sum()
    means = {
        metric.name: float(mean)
        for metric, mean in zip(panel, weighted, strict=True)
        if isinstance(metric, ReviewMean)
    }
    return means, {}
