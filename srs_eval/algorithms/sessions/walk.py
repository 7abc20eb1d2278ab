"""A pass over a log that learns the weights of features from predictions out of sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numba
import numpy as np

from srs_eval.algorithms.algorithm import Algorithm, Contribution, Learned, MemoryModel, Part
from srs_eval.algorithms.combined import (
    Query,
    as_part,
    fitted,
    learned_by,
    log_odds,
)
from srs_eval.algorithms.sessions.features import FORMULAS, GROUP_OF, Answers, answers_of
from srs_eval.data.reviews import FloatArray, IntArray, Reviews
from srs_eval.errors import FitError, FitSkipped

# Of the information of an answer, so that certain predictions can be unlearned.
_LEAST_INFORMATION = 0.02
# Of the training reviews, to which the base algorithm is fitted in turn, and the fewest of them.
_SHARES = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)
_FEWEST = 20


# Each step needs the one before and none is linear, so no numpy function can take its place.
@numba.njit()
def learn_weights(
    features: FloatArray, offset: FloatArray, outcome: FloatArray, width: FloatArray, drift: float
) -> tuple[FloatArray, FloatArray]:
    """Learn weights from answer to answer: an extended Kalman filter.

    The model of an answer is a logistic regression, log-odds of recall ``offset + features @ w``,
    whose weights have the prior N(0, diag(width)) and walk at random by N(0, drift width) from
    one answer to the next. Return the means after k answers, [answers + 1, features], and the
    covariance after the last one.
    """
    answers, size = features.shape
    weights = np.empty((answers + 1, size))
    covariance = np.diag(width)
    gain = np.empty(size)
    w = np.zeros(size)
    weights[0] = w
    for answer in range(answers):
        x = features[answer]
        z = offset[answer]
        gain[:] = 0.0
        for k in range(size):
            z += w[k] * x[k]
            for i in range(size):
                gain[i] += covariance[k, i] * x[k]
        p = 1.0 / (1.0 + np.exp(-z))
        spread = 0.0
        for k in range(size):
            spread += gain[k] * x[k]
        information = max(p * (1.0 - p), _LEAST_INFORMATION)
        share = 1.0 / (1.0 + information * spread)
        for k in range(size):
            w[k] += gain[k] * share * (outcome[answer] - p)
            down = gain[k] * share * information
            for i in range(size):
                covariance[k, i] -= down * gain[i]
            covariance[k, k] += drift * width[k]
        weights[answer + 1] = w
    return weights, covariance


@dataclass(frozen=True)
class Walk:
    """Later-day reviews of a log, their features, and the weights after each answer."""

    answers: Answers
    rows: IntArray  # [m]: Rows of the later-day reviews
    features: FloatArray  # [m, features]
    path: FloatArray  # [answers + 1, features]: Weights after k answers
    covariance: FloatArray  # [features, features]: Of the weights after the last answer
    # Entry of the first review that is learned from: before it there is no prediction out of sample
    first: int
    z: FloatArray  # [m]: Log-odds of the base model
    sign: FloatArray  # [m]: Minus 1 where a review was recalled, 1 where it was not
    # [m, features]: What each feature adds to the log-odds, by the weights before each answer
    terms: FloatArray


@dataclass(frozen=True)
class Filter:
    """An algorithm, and features with weights that are learned from what it leaves unexplained."""

    algorithm: Algorithm  # The base
    # Names in `FORMULAS`, and the variances of their weights, of mean 0, before the first answer
    features: tuple[str, ...]
    width: FloatArray
    drift: float  # Share of the widths that is added to the variances after each answer
    # Fits of the base to the first 1/32, 1/16, ... and all of the training reviews, and the first
    # row after the training reviews of each
    models: tuple[MemoryModel, ...] = ()
    begins: tuple[int, ...] = ()

    def in_stages(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> Self:
        """Fit the base to growing parts of the training rows, from the one before if it can."""
        models: list[MemoryModel] = []
        begins: list[int] = []
        sizes = [int(len(rows) * share) for share in _SHARES]
        for size in [*(size for size in sizes if size >= _FEWEST), len(rows)]:
            previous = models[-1] if models else None
            try:
                models.append(fitted(self.algorithm, reviews, rows[:size], rng, previous))
            except FitSkipped:
                if size == len(rows):
                    raise
            else:
                begins.append(int(rows[size - 1]) + 1 if size else 0)
        return replace(self, models=tuple(models), begins=tuple(begins))

    def fit(
        self, reviews: Reviews, rows: IntArray, rng: np.random.Generator
    ) -> tuple[Self, Walk, Learned]:
        """Fit the base in stages, and learn the weights from `rows` on the way; record both."""
        own = self.in_stages(reviews, np.sort(rows), rng)
        walked, last = own.walk(reviews, own.begins[-1]), own.models[-1]
        learned = replace(
            learned_by(last),
            standard_errors=tuple(np.sqrt(np.diag(walked.covariance)).tolist()),
            parts=tuple(as_part(last, Part("base", "base", n_train=len(rows)))),
        )
        return own, walked, learned

    def log_odds(self, query: Query) -> FloatArray:
        """Return log-odds of recall, each by the latest fit before its row, or the first."""
        stage = np.searchsorted(self.begins[1:], query.rows, side="right")
        parts = ((model, stage == number) for number, model in enumerate(self.models))
        return log_odds(query.seen_by(self.algorithm).by_rows(parts))

    def walk(self, reviews: Reviews, end: int) -> Walk:
        """Compute the features of the log before row `end`, and learn their weights."""
        reviews = reviews.take(np.arange(end))
        of_base, rows = np.zeros(end), np.flatnonzero(reviews.elapsed > 0)
        of_base[rows] = self.log_odds(Query(reviews, rows))
        answers = answers_of(reviews, of_base)
        if not np.isfinite(answers.z).all():
            raise FitError("base: some predictions are no probabilities")
        rows = np.flatnonzero(answers.later)
        features = np.empty((len(rows), len(self.features)))
        for number, name in enumerate(self.features):
            features[:, number] = FORMULAS[name](answers)[rows]
        first, z = int(np.searchsorted(rows, self.begins[0])), answers.z[rows]
        recalled = reviews.recalled[rows]
        learned = (features[first:], z[first:], recalled[first:].astype(np.float64))
        path, covariance = learn_weights(*learned, self.width, self.drift)
        terms = features * path[np.maximum(np.arange(len(rows)) - first, 0)]
        sign = np.where(recalled, -1.0, 1.0)
        return Walk(answers, rows, features, path, covariance, first, z, sign, terms)


def contributions(walked: Walk, features: Sequence[str]) -> tuple[Contribution, ...]:
    """Return how much log loss what a group of features adds saves, by the weights before answers.

    Standard errors allow for correlation within days.
    """
    if len(walked.rows) == walked.first:
        return ()
    groups = [GROUP_OF[name] for name in features]
    learned = slice(walked.first, None)
    sign, terms = walked.sign[learned], walked.terms[learned]
    z = walked.z[learned] + terms.sum(axis=1)
    day = walked.answers.day[walked.rows[learned]]
    gains = []
    for group in dict.fromkeys(groups):
        own = terms[:, [other == group for other in groups]].sum(axis=1)
        saved = np.logaddexp(0.0, sign * (z - own)) - np.logaddexp(0.0, sign * z)
        by_day = np.bincount(day, saved - saved.mean())
        error = float(np.sqrt(np.sum(by_day**2)) / len(saved))
        gains.append(Contribution(group, float(saved.mean()), error))
    return tuple(gains)
