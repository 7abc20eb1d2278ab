"""Another algorithm, recalibrated from day to day by a bias and a slope of its log-odds.

    cd examples/blend
    python -m srs_eval --config-dir conf -m algo=blend,fsrs6

The logistic regression of Platt (1999), *Probabilistic Outputs for Support Vector Machines*, kept
up to date by exponential forgetting: one step of Newton's method after each day.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from srs_eval.algorithms.algorithm import (
    WHEN,
    Algorithm,
    MemoryModel,
    When,
    has_curve,
    when_of,
)
from srs_eval.data.reviews import FloatArray, IntArray, Reviews

LOWEST_SLOPE = 0.05  # a slope below 0 would have recall rise with elapsed time


def log_odds(p: FloatArray) -> FloatArray:
    """Return log-odds, none of them beyond 20."""
    return np.clip(logit(np.asarray(p, np.float64)), -20, 20)


@dataclass(frozen=True)
class Recalibration:
    """Bias and slope, and what the answers so far say of them."""

    half_life: float  # answers after which an answer counts half
    prior: float  # strength of the pull towards leaving log-odds alone
    weights: tuple[float, float] = (0.0, 1.0)
    information: tuple[tuple[float, ...], ...] = ((0.0, 0.0), (0.0, 0.0))

    def after(self, z: FloatArray, recalled: FloatArray) -> Recalibration:
        """Learn from the answers of a day, which were predicted with log-odds `z`."""
        x = np.column_stack([np.ones(len(z)), z])
        w, fading = np.array(self.weights), 0.5 ** (len(z) / self.half_life)
        p = expit(x @ w)
        information = fading * np.array(self.information) + (x.T * (p * (1 - p))) @ x
        # Where the sum of the answers' losses was flat, its prior is what has not faded.
        gradient = x.T @ (p - recalled) + (1 - fading) * self.prior * (w - (0, 1))
        bias, slope = w - np.linalg.solve(information + self.prior * np.eye(2), gradient)
        return Recalibration(
            *(self.half_life, self.prior),
            (float(bias), max(float(slope), LOWEST_SLOPE)),
            tuple(map(tuple, information.tolist())),
        )

    def path(
        self, z: FloatArray, recalled: FloatArray, day: IntArray
    ) -> tuple[IntArray, list[Recalibration]]:
        """Go day by day; return the days, and where it stands before each and after the last."""
        days, begins = np.unique(day, return_index=True)
        states = [self]
        for block in np.split(np.arange(len(day)), begins[1:]) if len(days) else []:
            states.append(states[-1].after(z[block], recalled[block]))
        return days, states


@dataclass(frozen=True)
class BlendModel:
    """A fitted model, and where its recalibration stands after the training reviews."""

    model: MemoryModel
    recalibration: Recalibration
    until: int  # last row that was trained on

    @property
    def parameters(self) -> tuple[float, ...]:
        """Bias, slope, and the parameters of the model."""
        return (*self.recalibration.weights, *self.model.parameters)

    @property
    def has_curve(self) -> bool:
        """Whether the model has a forgetting curve."""
        return has_curve(self.model)

    def predict(self, reviews: Reviews, rows: IntArray) -> FloatArray:
        """Predict recall at each of `rows`."""
        p = self.model.predict(reviews, rows)
        return self.moved(log_odds(p)[:, None], reviews, rows)[:, 0]

    def predict_at(self, reviews: Reviews, rows: IntArray, elapsed: FloatArray) -> FloatArray:
        """Predict recall at other elapsed times, [rows, k]."""
        return self.moved(log_odds(self.model.predict_at(reviews, rows, elapsed)), reviews, rows)

    def moved(self, z: FloatArray, reviews: Reviews, rows: IntArray) -> FloatArray:
        """Recalibrate log-odds [rows, k] by all answers since training, until the day before."""
        since = np.arange(self.until + 1, rows.max(initial=-1) + 1)
        since = since[reviews.elapsed[since] > 0]
        before = log_odds(self.model.predict(reviews, since))
        days, states = self.recalibration.path(before, reviews.recalled[since], reviews.day[since])
        weights = np.array([state.weights for state in states])
        bias, slope = weights[np.searchsorted(days, reviews.day[rows])].T
        return expit(bias[:, None] + slope[:, None] * z)


@dataclass(frozen=True)
class Blend(Algorithm):
    """Another algorithm, and how fast its recalibration follows the answers.

    Parameters
    ----------
    base : Algorithm
        The other algorithm.
    half_life : float
        Answers after which an answer counts half.
    prior : float
        Strength of the pull towards leaving predictions alone: 20 weighs as much as 80 answers that
        could as well have gone the other way.
    """

    base: Algorithm
    half_life: float = 1000.0
    prior: float = 20.0

    @property
    def same_day(self) -> bool:
        """Whether the other algorithm reads same-day reviews."""
        return self.base.same_day

    @property
    def when(self) -> When:
        """When the later of the other algorithm and the recalibration is known."""
        return max(when_of(self.base), "day_before", key=WHEN.index)

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> BlendModel:
        """Fit the other algorithm; recalibration begins when the training reviews end."""
        model = self.base.fit(reviews, rows, rng)
        start = Recalibration(self.half_life, self.prior)
        return BlendModel(model, start, int(rows.max(initial=-1)))
