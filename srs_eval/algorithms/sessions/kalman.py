"""An extended Kalman filter on the weights of a logistic regression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numba
import numpy as np

from srs_eval.nouns import BoolArray, Matrix, Vector

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
