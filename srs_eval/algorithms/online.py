"""Baselines that go on learning: from each answer, before the next prediction."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numba
import numpy as np

from srs_eval.algorithms.algorithm import Algorithm, When
from srs_eval.algorithms.options import require_above_zero, require_whole
from srs_eval.data.cards import rows_by_card
from srs_eval.data.reviews import FloatArray, IntArray, Reviews
from srs_eval.engine.equations import uncertain
from srs_eval.errors import ConfigError


class _Online(ABC):
    """Base of models that go on learning while they predict."""

    __slots__ = ()

    @abstractmethod
    def followed(self, reviews: Reviews, rows: IntArray) -> tuple[FloatArray, Any]:
        """Predict `rows`, in time order; return also the model as it is after them."""

    def predict(self, reviews: Reviews, rows: IntArray) -> FloatArray:
        """Predict each of `rows` in time order, learning from each answer afterwards.

        `rows` must be all scored reviews after the training reviews, because the
        prediction of each one rests on those before it.
        """
        in_time = np.argsort(rows, kind="stable")
        p = np.empty(len(rows))
        p[in_time], _ = self.followed(reviews, rows[in_time])
        return uncertain(p)


# Each step needs the one before and none is linear, so no numpy function can take its place.
@numba.njit(error_model="numpy")
def _followed(level: float, rate: float, outcome: FloatArray) -> tuple[float, FloatArray]:
    p = np.empty(len(outcome))
    for review in range(len(outcome)):
        p[review] = 1.0 / (1.0 + math.exp(-level))
        level += rate * (outcome[review] - p[review])
    return level, p


@dataclass(frozen=True, slots=True)
class MovingAverageModel(_Online):
    """Where the moving average stands after the training reviews."""

    level: float  # Log-odds of recall
    rate: float  # How far one answer moves it

    @property
    def parameters(self) -> tuple[float, ...]:
        return (self.level,)

    def followed(self, reviews: Reviews, rows: IntArray) -> tuple[FloatArray, MovingAverageModel]:
        outcome = reviews.recalled[rows].astype(np.float64)
        level, p = _followed(self.level, self.rate, outcome)
        return p, MovingAverageModel(level, self.rate)


@dataclass(frozen=True, slots=True)
class MovingAverage(Algorithm):
    """A moving average of a user's outcomes that never looks at the card (MOVING-AVG).

    The log-odds of recall begin at `start`; after each scored review they move by `rate`
    times the error of the prediction. Of the public benchmark,
    https://github.com/open-spaced-repetition/srs-benchmark. Reads outcomes only; 1 parameter, the
    average itself. Published row, without same-day reviews: log loss 0.3369, RMSE(bins) 0.05915,
    AUC 0.7001.

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

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> MovingAverageModel:
        """Follow the outcomes of `rows` from the first one on."""
        begin = MovingAverageModel(float(self.start), float(self.rate))
        return begin.followed(reviews, np.sort(rows))[1]


# RMSE(bins) groups reviews by elapsed days, number of the review and lapses of the card, with
# a limit between two groups at each power of these.
_BASES = (3.62, 1.89, 1.73)
_POWERS = 32
_BINS = (_POWERS + 1) ** len(_BASES)

_AGAIN = 1


def _bins_of(reviews: Reviews, rows: IntArray) -> IntArray:
    """Return the bin of RMSE(bins) of each of `rows`, at least 0.

    Lapses are counted as `srs_benchmark` does where elapsed times are in whole days, and as
    `srs_benchmark_secs` does where they are not.
    """
    cards = rows_by_card(reviews.card)
    later_day = reviews.elapsed_days > 0
    again = reviews.rating == _AGAIN
    facts = (
        reviews.elapsed_days,
        1 + cards.earlier(later_day) + later_day,
        cards.earlier(again & later_day if reviews.whole_days else again),
    )
    bin_ = np.zeros(len(rows), np.int64)
    for fact, base in zip(facts, _BASES, strict=True):
        limits = base ** np.arange(_POWERS)
        bin_ = bin_ * (_POWERS + 1) + np.searchsorted(limits, fact[rows], side="right")
    return bin_


@numba.njit(error_model="numpy")
def _balanced(
    predicted: FloatArray,
    recalled: FloatArray,
    seen: FloatArray,
    bin_: IntArray,
    outcome: FloatArray,
) -> FloatArray:
    p = np.empty(len(outcome))
    for review in range(len(outcome)):
        here = bin_[review]
        if seen[0] == 0:
            p[review] = 0.5  # published so: a guess that no other prediction makes up for
        else:
            missing = recalled[here] + seen[1] / seen[0] - predicted[here]
            p[review] = min(max(missing, 0.0), 1.0)
            predicted[here] += p[review]
        recalled[here] += outcome[review]
        seen[0] += 1.0
        seen[1] += outcome[review]
    return p


@dataclass(frozen=True, slots=True)
class RmseBinsExploitModel(_Online):
    """What is missing in each bin after the training reviews."""

    # [bins]: Sums of predictions and of outcomes
    predicted: FloatArray
    recalled: FloatArray
    seen: FloatArray  # [2]: How many reviews there were, and how many of them were recalled

    parameters: ClassVar[tuple[float, ...]] = ()

    def followed(self, reviews: Reviews, rows: IntArray) -> tuple[FloatArray, RmseBinsExploitModel]:
        sums = self.predicted.copy(), self.recalled.copy(), self.seen.copy()
        outcome = reviews.recalled[rows].astype(np.float64)
        return _balanced(*sums, _bins_of(reviews, rows), outcome), RmseBinsExploitModel(*sums)


@dataclass(frozen=True, slots=True)
class RmseBinsExploit(Algorithm):
    """An attack on RMSE(bins), not a model of memory (RMSE-BINS-EXPLOIT).

    Predicts what makes the predictions of a bin add up to its recalls, one review late, so that
    the bins look calibrated whatever the predictions are worth. Of the public benchmark,
    https://github.com/open-spaced-repetition/srs-benchmark. Reads elapsed days, the card's
    number of reviews and lapses, and outcomes; no parameters. Published row, without same-day
    reviews: log loss 4.608, RMSE(bins) 0.01350, AUC 0.6548.

    Parameters
    ----------
    skip : int
        How many of a user's first scored reviews it does not watch, 0 or more. The published
        one does not watch the reviews before the first test block, whose number no algorithm
        can know here; what is owed from them makes RMSE(bins) a little worse.
    """

    when: ClassVar[When] = "at_review"

    skip: int = 0

    def __post_init__(self) -> None:
        require_whole("rmse_bins_exploit", "skip", self.skip, least=0)

    def fit(
        self, reviews: Reviews, rows: IntArray, rng: np.random.Generator
    ) -> RmseBinsExploitModel:
        nothing = RmseBinsExploitModel(np.zeros(_BINS), np.zeros(_BINS), np.zeros(2))
        return nothing.followed(reviews, np.sort(rows)[self.skip :])[1]
