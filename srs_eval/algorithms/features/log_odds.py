"""Algorithms whose log-odds of recall are a function of the whole history of a card."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from scipy.special import expit

from srs_eval.algorithms.algorithm import Learned
from srs_eval.algorithms.fitted import Fitted
from srs_eval.algorithms.history import CurveOnly, History, history_of
from srs_eval.algorithms.recurrent.model import with_binary_ratings
from srs_eval.data.reviews import FloatArray, IntArray, Reviews
from srs_eval.engine.compiled import Fisher, Gradient
from srs_eval.engine.equations import uncertain
from srs_eval.engine.parameters import ParameterSpace

# From the parameters to log-odds [rows] and their derivatives [rows, parameters].
LogOddsOf = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


class LogOdds(Protocol):
    """A memory model as mathematics: log-odds of recall with their derivatives."""

    @property
    def parameters(self) -> ParameterSpace:
        """Defaults, bounds and spread of its numbers."""

    def at(self, history: History, rows: IntArray, elapsed: FloatArray) -> LogOddsOf:
        """Gather what the history before each of `rows` says, whatever the parameters are.

        Only the last interval may be other than the log's: `elapsed` days.
        """


def linear(features: FloatArray) -> LogOddsOf:
    """Log-odds that are a weighted sum of features [rows, parameters]."""
    return lambda w: (features @ w, features)


@dataclass(frozen=True, slots=True)
class LogOddsModel(CurveOnly):
    """A function with numbers in it: a memory model with a forgetting curve."""

    log_odds: LogOdds  # The model as mathematics
    parameters: tuple[float, ...]  # Its numbers
    learned: Learned = field(default_factory=Learned)  # How they were found
    binary: bool = False  # Whether Hard and Easy are taken for Good

    def predict_at(self, reviews: Reviews, rows: IntArray, elapsed: FloatArray) -> FloatArray:
        """Predict recall at other elapsed times, [len(rows), k]; NaN at a card's first review."""
        history = history_of(with_binary_ratings(reviews) if self.binary else reviews)
        times = np.asarray(elapsed, np.float64)
        each = np.repeat(rows, times.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):
            log_odds, _ = self.log_odds.at(history, each, times.ravel())(np.array(self.parameters))
        p = np.where(history.nth[each] > 0, expit(log_odds), np.nan)
        return uncertain(p).reshape(times.shape)


@dataclass(frozen=True, slots=True)
class LogLoss:
    """Sum of weight * log loss, as a function of the parameters."""

    log_odds: LogOddsOf  # Log-odds of the training reviews and their derivatives
    # [rows]: Outcomes, and what each counts
    recalled: FloatArray
    weight: FloatArray

    def gradient(self, w: FloatArray) -> Gradient:
        loss, gradient, _ = self.fisher(w)
        return Gradient(loss, gradient)

    def fisher(self, w: FloatArray) -> Fisher:
        # Callers refuse results that are not finite.
        with np.errstate(over="ignore", invalid="ignore"):
            log_odds, slopes = self.log_odds(w)
            p = expit(log_odds)
            against = np.where(self.recalled > 0, -log_odds, log_odds)
            loss = float(self.weight @ np.logaddexp(0.0, against))
            gradient = self.weight * (p - self.recalled) @ slopes
            information = (slopes * (self.weight * p * (1 - p))[:, None]).T @ slopes
        return Fisher(loss, gradient, information)


class FittedLogOdds(Fitted):
    """Base of algorithms whose equations are log-odds that look back at whole histories."""

    kind_of_model = LogOddsModel
    # In double precision a fit can end nearer to the minimum than in single precision; where
    # parameters stand in for each other, steps with little gain can still add up.
    tolerance = 1e-7
    decimals_in_fractions = 4

    def loss(self, equations: LogOdds, reviews: Reviews) -> Callable[..., LogLoss]:
        history = history_of(reviews)

        def loss(rows: IntArray, weight: FloatArray, *, public: bool = True) -> LogLoss:
            function = equations.at(history, rows, reviews.elapsed[rows])
            return LogLoss(function, reviews.recalled[rows].astype(np.float64), weight)

        return loss
