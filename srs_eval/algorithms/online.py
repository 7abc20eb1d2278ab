"""Baselines that go on learning: from each answer, before the next prediction."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numba
import numpy as np
from annotated_types import Ge
from pydantic import Strict

from srs_eval.algorithms.algorithm import Algorithm, When
from srs_eval.algorithms.options import Finite, Positive
from srs_eval.data.cards import rows_by_card
from srs_eval.data.reviews import FloatArray, IntArray, Reviews
from srs_eval.engine.equations import uncertain


class Online(Algorithm):
    """Base of algorithms that go on learning while they predict."""

    __slots__ = ()
    when: ClassVar[When] = "at_review"
    skip: int = 0  # Of the first training rows, how many are not watched

    @abstractmethod
    def follow(self, reviews: Reviews, rows: IntArray) -> tuple[FloatArray, tuple[float, ...]]:
        """Predict `rows`, in time order, learning from each answer; return also what is learned."""

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> OnlineModel:
        """Follow the outcomes of `rows` from the first one on."""
        rows = np.sort(rows)[self.skip :]
        return OnlineModel(self, rows, self.follow(reviews, rows)[1])


@dataclass(frozen=True, slots=True)
class OnlineModel:
    """What was watched in training, which predictions go on from."""

    algorithm: Online
    rows: IntArray  # The training rows
    parameters: tuple[float, ...]

    def predict(self, reviews: Reviews, rows: IntArray) -> FloatArray:
        """Predict each of `rows` in time order, learning from each answer afterwards.

        `rows` must be all scored reviews after the training reviews, because the
        prediction of each one rests on those before it.
        """
        in_time = np.argsort(rows, kind="stable")
        p = np.empty(len(rows))
        watched = np.concatenate([self.rows, rows[in_time]])
        p[in_time] = self.algorithm.follow(reviews, watched)[0][len(self.rows) :]
        return uncertain(p)


# Each step needs the one before and none is linear, so no numpy function can take its place.
@numba.njit(error_model="numpy")
def _moving(level: float, rate: float, recalled: FloatArray) -> tuple[FloatArray, float]:
    p = np.empty(len(recalled))
    for review in range(len(recalled)):
        p[review] = 1.0 / (1.0 + math.exp(-level))
        level += rate * (recalled[review] - p[review])
    return p, level


@dataclass(frozen=True, slots=True)
class MovingAverage(Online):
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

    start: Finite = 1.2
    rate: Positive = 0.3

    def follow(self, reviews: Reviews, rows: IntArray) -> tuple[FloatArray, tuple[float, ...]]:
        recalled = reviews.recalled[rows].astype(np.float64)
        p, level = _moving(float(self.start), float(self.rate), recalled)
        return p, (level,)


# RMSE(bins) groups reviews by elapsed days, number of the review and lapses of the card, with
# a limit between two groups at each power of these.
_BASES = (3.62, 1.89, 1.73)
_POWERS = 32


def _bins_of(reviews: Reviews, rows: IntArray) -> IntArray:
    """Bin of RMSE(bins) of each of `rows`, as `srs_benchmark` or `srs_benchmark_secs` has them."""
    cards = rows_by_card(reviews.card)
    later_day, again = reviews.elapsed_days > 0, ~reviews.recalled
    facts = (
        reviews.elapsed_days,
        1 + cards.earlier(later_day) + later_day,
        cards.earlier(again & later_day if reviews.whole_days else again),
    )
    bins = np.zeros(len(rows), np.int64)
    for fact, base in zip(facts, _BASES, strict=True):
        limits = base ** np.arange(_POWERS)
        bins = bins * (_POWERS + 1) + np.searchsorted(limits, fact[rows], side="right")
    return bins


@numba.njit(error_model="numpy")
def _balanced(bins: IntArray, recalled: FloatArray) -> FloatArray:
    p = np.empty(len(recalled))
    predicted, passed = np.zeros((2, bins.max() + 1 if len(bins) else 0))
    total = 0.0
    for review in range(len(recalled)):
        here = bins[review]
        if review == 0:
            p[review] = 0.5  # published so: a guess that no other prediction makes up for
        else:
            owed = passed[here] + total / review - predicted[here]
            p[review] = min(max(owed, 0.0), 1.0)
            predicted[here] += p[review]
        passed[here] += recalled[review]
        total += recalled[review]
    return p


@dataclass(frozen=True, slots=True)
class RmseBinsExploit(Online):
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

    skip: Annotated[int, Strict(), Ge(0)] = 0

    def follow(self, reviews: Reviews, rows: IntArray) -> tuple[FloatArray, tuple[float, ...]]:
        return _balanced(_bins_of(reviews, rows), reviews.recalled[rows].astype(np.float64)), ()
