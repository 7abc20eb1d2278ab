"""From predictions to scores: per user, then over users, each mean with its interval."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from srs_eval.evaluate import UserEvaluation
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.resample import single_user_intervals
from srs_eval.metrics.summary import MetricSummary, summarise
from srs_eval.nouns import Fit, FitStatus, IntArray, Predictions, User
from srs_eval.predictions import concatenate, rows_fingerprint


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
        NaN where a metric is not defined, and throughout where any fold of the user is
        missing: the others would be other reviews than those other algorithms are scored on.
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
    """All that is known of an algorithm on a set of users.

    Attributes
    ----------
    predictions : Predictions or None
        Of every fold that worked; None if none did.
    scored : Predictions or None
        Those of users without a missing fold, which is what the summary is about.
    reviews_read : int
        Reviews in the logs, scored or not.
    interval_over : str
        What was resampled for the intervals: ``users``, or ``cards`` of a single user.
    """

    fits: tuple[Fit, ...]
    predictions: Predictions | None
    scored: Predictions | None
    scores: Scores
    summary: Mapping[str, MetricSummary]
    reviews_read: int
    left_out: Mapping[str, int]
    data_fingerprint: str
    interval_over: str

    def count(self, status: FitStatus) -> int:
        """Count the fits of a status."""
        return sum(fit.status == status for fit in self.fits)


def score_evaluations(evaluations: Sequence[UserEvaluation], panel: Panel) -> Evaluation:
    """Score what was predicted; nothing is fitted again.

    Parameters
    ----------
    evaluations : sequence of UserEvaluation
        One per user, in the order of the source.
    panel : Panel
        What to compute.
    """
    fits = tuple(fit for evaluation in evaluations for fit in evaluation.fits)
    parts = [e.predictions for e in evaluations if e.predictions is not None]
    whole = [
        e.predictions
        for e in evaluations
        if e.predictions is not None and all(fit.status == "ok" for fit in e.fits)
    ]
    scored = concatenate(whole)
    scores = _score_users(evaluations, panel)
    summary, interval_over = _summary(scores, scored, panel)
    logs = [evaluation.log for evaluation in evaluations]
    left_out: Counter[str] = Counter()
    for log in logs:
        left_out.update(log.left_out)
    fingerprints = "".join(log.fingerprint for log in logs)
    return Evaluation(
        fits=fits,
        # Usually the same: no second copy of what may be millions of rows.
        predictions=scored if len(whole) == len(parts) else concatenate(parts),
        scored=scored,
        scores=scores,
        summary=summary,
        reviews_read=sum(log.reviews for log in logs),
        left_out=dict(left_out),
        data_fingerprint=hashlib.sha256(fingerprints.encode()).hexdigest()[:16],
        interval_over=interval_over,
    )


def _score_users(evaluations: Sequence[UserEvaluation], panel: Panel) -> Scores:
    tried = [e for e in evaluations if any(fit.status != "skipped" for fit in e.fits)]
    values = np.full((len(tried), len(panel.names)), math.nan)
    reviews = np.zeros(len(tried), np.int64)
    rows = [""] * len(tried)
    for number, evaluation in enumerate(tried):
        complete = all(fit.status == "ok" for fit in evaluation.fits)
        if complete and evaluation.predictions is not None:
            values[number] = list(panel.score(evaluation.predictions).values())
            rows[number] = rows_fingerprint(evaluation.predictions)
            reviews[number] = len(evaluation.predictions)
    users = tuple(e.user for e in tried)
    return Scores(users, reviews, tuple(rows), panel.names, values)


def _summary(
    scores: Scores, scored: Predictions | None, panel: Panel
) -> tuple[Mapping[str, MetricSummary], str]:
    """Summarise over users; with a single one, resample that user's cards instead."""
    if scored is None:
        nothing = dict.fromkeys(panel.names, math.nan)
        return summarise(scores.names, scores.values, scores.reviews, nothing), "users"
    complete = np.array([rows != "" for rows in scores.rows])
    single = len(scores.users) == 1
    summary = summarise(
        scores.names,
        scores.values[complete],
        scores.reviews[complete],
        panel.score(scored),
        single_user=single_user_intervals(panel, scored) if single else None,
    )
    return summary, "cards and days" if single else "users"
