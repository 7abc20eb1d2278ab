"""The baseline that goes on learning: a moving average of the user's outcomes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numba
import numpy as np
from numpy.typing import NDArray

from srs_eval.algorithms.options import require_above_zero
from srs_eval.engine.probability import uncertain
from srs_eval.errors import ConfigError
from srs_eval.nouns import Algorithm, FloatArray, IntArray, Reviews, When


def _follow(
    level: float, rate: float, outcome: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    p = np.empty(len(outcome))
    for review in range(len(outcome)):
        p[review] = 1.0 / (1.0 + math.exp(-level))
        level += rate * (outcome[review] - p[review])
    return level, p


# Each step needs the one before and none is linear, so no numpy function can take its place.
_Sequential = Callable[[float, float, NDArray[np.float64]], tuple[float, NDArray[np.float64]]]
_followed: _Sequential = numba.njit()(_follow)


@dataclass(frozen=True, slots=True)
class MovingAverageModel:
    """Where the moving average stands after the training reviews."""

    level: float  # Log-odds of recall
    rate: float  # How far one answer moves it

    @property
    def parameters(self) -> tuple[float, ...]:
        return (self.level,)

    def predict(self, reviews: Reviews, rows: IntArray) -> FloatArray:
        """Predict each of `rows` in time order, learning from each answer afterwards.

        `rows` must be all scored reviews after the training reviews, because the
        prediction of each one rests on those before it.
        """
        in_time = np.argsort(rows, kind="stable")
        p = np.empty(len(rows))
        outcome = reviews.recalled[rows[in_time]].astype(np.float64)
        _, p[in_time] = _followed(self.level, self.rate, outcome)
        return uncertain(p)


@dataclass(frozen=True, slots=True)
class MovingAverage(Algorithm):
    """A moving average of a user's outcomes that never looks at the card (MOVING-AVG).

    The log-odds of recall begin at `start`; after each scored review they move by `rate`
    times the error of the prediction. Of the public benchmark,
    https://github.com/open-spaced-repetition/srs-benchmark. Reads outcomes only; no parameters.
    Published row, without same-day reviews: log loss 0.3369, RMSE(bins) 0.05915, AUC 0.7001.

    Parameters
    ----------
    start : float
        Log-odds at the user's first scored review.
    rate : float
        Positive.
    """

    when: ClassVar[When] = "at_review"

    start: float = 1.2
    rate: float = 0.3

    def __post_init__(self) -> None:
        if not (isinstance(self.start, int | float) and math.isfinite(self.start)):
            raise ConfigError(f"moving_avg: start={self.start} must be a finite number")
        require_above_zero("moving_avg", "rate", self.rate)

    def fit(
        self,
        reviews: Reviews,
        rows: IntArray,
        rng: np.random.Generator,
    ) -> MovingAverageModel:
        """Follow the outcomes of `rows` from the first one on."""
        outcome = reviews.recalled[np.sort(rows)].astype(np.float64)
        level, _ = _followed(float(self.start), float(self.rate), outcome)
        return MovingAverageModel(level, float(self.rate))
