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

    @abstractmethod
    def begin(self) -> FloatArray:
        """Return the state before the first answer."""

    @abstractmethod
    def predict_and_learn(self, state: FloatArray, reviews: Reviews, rows: IntArray) -> FloatArray:
        """Predict `rows`, in time order, changing the state in place with each answer."""

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> OnlineModel:
        """Follow the outcomes of `rows` from the first one on."""
        state = self.begin()
        self.predict_and_learn(state, reviews, np.sort(rows))
        return OnlineModel(self, state)


@dataclass(frozen=True, slots=True)
class OnlineModel:
    """State after the training reviews, from which predictions go on learning."""

    algorithm: Online
    state: FloatArray

    @property
    def parameters(self) -> tuple[float, ...]:
        """The state, where it is one number."""
        return tuple(self.state.tolist()) if len(self.state) == 1 else ()

    def predict(self, reviews: Reviews, rows: IntArray) -> FloatArray:
        """Predict each of `rows` in time order, learning from each answer afterwards.

        `rows` must be all scored reviews after the training reviews, because the
        prediction of each one rests on those before it.
        """
        in_time = np.argsort(rows, kind="stable")
        p = np.empty(len(rows))
        state = self.state.copy()
        p[in_time] = self.algorithm.predict_and_learn(state, reviews, rows[in_time])
        return uncertain(p)


# Each step needs the one before and none is linear, so no numpy function can take its place.
@numba.njit(error_model="numpy")
def _moving(level: FloatArray, rate: float, recalled: FloatArray) -> FloatArray:
    p = np.empty(len(recalled))
    for review in range(len(recalled)):
        p[review] = 1.0 / (1.0 + math.exp(-level[0]))
        level[0] += rate * (recalled[review] - p[review])
    return p


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

    def begin(self) -> FloatArray:
        return np.array([float(self.start)])

    def predict_and_learn(self, state: FloatArray, reviews: Reviews, rows: IntArray) -> FloatArray:
        return _moving(state, float(self.rate), reviews.recalled[rows].astype(np.float64))


# RMSE(bins) groups reviews by elapsed days, number of the review and lapses of the card, with
# a limit between two groups at each power of these.
_BASES = (3.62, 1.89, 1.73)
_POWERS = 32
_BINS = (_POWERS + 1) ** len(_BASES)


def _bins_of(reviews: Reviews, rows: IntArray) -> IntArray:
    """Return the bin of RMSE(bins) of each of `rows`, at least 0.

    Lapses are counted as `srs_benchmark` does where elapsed times are in whole days, and as
    `srs_benchmark_secs` does where they are not.
    """
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
def _balanced(state: FloatArray, bins: IntArray, recalled: FloatArray) -> FloatArray:
    p = np.empty(len(recalled))
    predicted, passed, total = state[:_BINS], state[_BINS:-2], state[-2:]
    for review in range(len(recalled)):
        here = bins[review]
        if total[0] == 0:
            p[review] = 0.5  # published so: a guess that no other prediction makes up for
        else:
            owed = passed[here] + total[1] / total[0] - predicted[here]
            p[review] = min(max(owed, 0.0), 1.0)
            predicted[here] += p[review]
        passed[here] += recalled[review]
        total[0] += 1.0
        total[1] += recalled[review]
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

    def begin(self) -> FloatArray:
        """Return sums of predictions and recalls by bin, and numbers of reviews and recalls."""
        return np.zeros(2 * _BINS + 2)

    def predict_and_learn(self, state: FloatArray, reviews: Reviews, rows: IntArray) -> FloatArray:
        recalled = reviews.recalled[rows].astype(np.float64)
        return _balanced(state, _bins_of(reviews, rows), recalled)

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> OnlineModel:
        """Follow the outcomes of `rows` but the first ones."""
        return Online.fit(self, reviews, np.sort(rows)[self.skip :], rng)
