"""A pass over a log that learns the weights of features by an extended Kalman filter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numba
import numpy as np

from srs_eval.algorithms.combined.stages import Stages
from srs_eval.algorithms.sessions.answers import Answers
from srs_eval.algorithms.sessions.features import Feature
from srs_eval.errors import FitError
from srs_eval.nouns import BoolArray, Contribution, FloatArray, IntArray, Matrix, Reviews, Vector

# Of the information of an answer, so that certain predictions can be unlearned.
_LEAST_INFORMATION = 0.02


def _learn(
    features: Matrix, offset: Vector, outcome: Vector, mean: Vector, width: Vector, drift: float
) -> tuple[Matrix, Matrix]:
    answers, size = features.shape
    weights = np.empty((answers + 1, size))
    covariance = np.diag(width)
    gain = np.empty(size)
    w = mean.copy()
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


# Each step needs the one before and none is linear, so no numpy function can take its place.
_Sequential = Callable[[Matrix, Vector, Vector, Vector, Vector, float], tuple[Matrix, Matrix]]
_learned: _Sequential = numba.njit()(_learn)


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of features before and after each answer."""

    path: Matrix  # [answers + 1, features]: Means; entry k is what was known after k answers
    covariance: Matrix  # [features, features]: After the last answer

    @property
    def mean(self) -> tuple[float, ...]:
        """Weights after the last answer."""
        return tuple(self.path[-1].tolist())

    @property
    def standard_errors(self) -> tuple[float, ...]:
        """Standard errors of the weights after the last answer."""
        return tuple(np.sqrt(np.diag(self.covariance)).tolist())


def learn_weights(
    features: Matrix, offset: Vector, recalled: BoolArray, mean: Vector, width: Vector, drift: float
) -> Weights:
    """Learn weights from answer to answer.

    The model of an answer is a logistic regression, log-odds of recall ``offset + features @ w``,
    whose weights have the prior N(mean, diag(width)) and walk at random by N(0, drift width) from
    one answer to the next.
    """
    return Weights(*_learned(features, offset, recalled.astype(np.float64), mean, width, drift))


@dataclass(frozen=True)
class Prior:
    """Features, and what is known of their weights before the first answer."""

    features: Mapping[str, Feature]
    # [features]: Means and variances
    mean: Vector
    width: Vector
    drift: float  # Share of the widths that is added to the variances after each answer


@dataclass(frozen=True)
class Walk:
    """Later-day reviews of a log, their features, and the weights as they were learned."""

    answers: Answers
    rows: IntArray  # [m]: Rows of the later-day reviews
    features: Matrix  # [m, features]
    weights: Weights
    # Entry of the first review that is learned from: before it there is no prediction out of sample
    first: int

    @cached_property
    def z(self) -> Vector:
        """Log-odds of the base model."""
        return self.answers.z[self.rows]

    @cached_property
    def live(self) -> Matrix:
        """Weights before each answer."""
        return self.weights.path[np.maximum(np.arange(len(self.rows)) - self.first, 0)]

    def begins_of_days(self) -> IntArray:
        """Return for each review the entry of the first review of its day."""
        day = self.answers.day[self.rows]
        return np.searchsorted(day, day)


def walk(stages: Stages, prior: Prior, reviews: Reviews) -> Walk:
    """Compute the features of a log and learn their weights."""
    answers = Answers(reviews, stages.log_odds(reviews))
    rows = np.flatnonzero(answers.later)
    features = np.empty((len(rows), len(prior.features)))
    for number, (name, feature) in enumerate(prior.features.items()):
        features[:, number] = _checked(name, feature(answers), len(reviews))[rows]
    first = int(np.searchsorted(rows, stages.begins[0]))
    learned = rows[first:]
    weights = learn_weights(
        features[first:],
        answers.z[learned],
        reviews.recalled[learned],
        prior.mean,
        prior.width,
        prior.drift,
    )
    return Walk(answers, rows, features, weights, first)


def _checked(name: str, values: FloatArray, reviews: int) -> FloatArray:
    if np.shape(values) != (reviews,) or not np.isfinite(values).all():
        raise FitError(
            f"feature {name}: found an array of shape {np.shape(values)}, expected one finite "
            f"number for each of {reviews} reviews"
        )
    return values


def contributions(walked: Walk, prior: Prior) -> tuple[Contribution, ...]:
    """Return how much log loss each group of features saves, level apart.

    Each answer is predicted with the weights before it, once with and once without what the
    features of the group add. Standard errors allow for correlation within days.
    """
    groups = [feature.group for feature in prior.features.values()]
    learned = slice(walked.first, None)
    sign = np.where(walked.answers.reviews.recalled[walked.rows[learned]], -1.0, 1.0)
    terms = (walked.features * walked.live)[learned]
    z = walked.z[learned] + terms.sum(axis=1)
    day = walked.answers.day[walked.rows[learned]]
    found = []
    for group in dict.fromkeys(groups):
        own = terms[:, [other == group for other in groups]].sum(axis=1)
        saved = np.logaddexp(0.0, sign * (z - own)) - np.logaddexp(0.0, sign * z)
        if not len(saved):
            return ()
        by_day = np.bincount(day, saved - saved.mean())
        error = float(np.sqrt(np.sum(by_day**2)) / len(saved))
        found.append(Contribution(group, float(saved.mean()), error))
    return tuple(found)
