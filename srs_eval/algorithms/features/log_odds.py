"""Memory models whose log-odds of recall are a function of the whole history of a card."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from srs_eval.algorithms.history import History, HistoryModel
from srs_eval.engine.compiled import Fisher, Gradient
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.engine.probability import uncertain
from srs_eval.nouns import FloatArray, IntArray, Learned, Vector

Slopes = NDArray[np.float64]
# From the parameters to log-odds [rows] and their derivatives [rows, parameters].
LogOddsOf = Callable[[Vector], tuple[Vector, Slopes]]


class LogOdds(Protocol):
    """A memory model as mathematics: log-odds of recall with their derivatives."""

    @property
    def parameters(self) -> ParameterSpace:
        """Defaults, bounds and spread of its numbers."""

    def at(self, history: History, rows: IntArray, elapsed: FloatArray) -> LogOddsOf:
        """Gather what the history before each of `rows` says, whatever the parameters are.

        `elapsed` are days since the card's previous review; for history it is the log's own that
        counts.
        """


@dataclass(frozen=True, slots=True)
class Linear:
    """Log-odds that are a weighted sum of features."""

    features: Slopes  # [rows, parameters]

    def __call__(self, w: Vector) -> tuple[Vector, Slopes]:
        """Return the log-odds and, as their derivatives, the features."""
        return self.features @ w, self.features


@dataclass(frozen=True, slots=True)
class LogOddsModel(HistoryModel):
    """A function with numbers in it: a memory model with a forgetting curve."""

    log_odds: LogOdds  # The model as mathematics
    parameters: tuple[float, ...]  # Its numbers
    learned: Learned = field(default_factory=Learned)  # How they were found

    def predict_after(self, history: History, rows: IntArray, elapsed: FloatArray) -> Vector:
        """Predict recall `elapsed` days after the review before; NaN at a card's first review."""
        with _allow_non_finite():
            log_odds, _ = self.log_odds.at(history, rows, elapsed)(np.asarray(self.parameters))
        return uncertain(np.where(history.nth[rows] > 0, expit(log_odds), np.nan))


@dataclass(frozen=True, slots=True)
class LogLoss:
    """Sum of weight * log loss + (w - centre)' penalty_matrix (w - centre), as a function of w."""

    log_odds: LogOddsOf  # Log-odds of the training reviews and their derivatives
    # [rows]: Outcomes, and what each counts
    recalled: Vector
    weight: Vector
    centre: Vector  # [parameters]: Where the penalty is 0
    penalty_matrix: Vector  # [parameters, parameters]: Half the precision of a normal prior

    def gradient(self, w: Vector) -> Gradient:
        with _allow_non_finite():
            return self._gradient(w, *self.log_odds(w))

    def fisher(self, w: Vector) -> Fisher:
        with _allow_non_finite():
            log_odds, slopes = self.log_odds(w)
            p = expit(log_odds)
            information = (slopes * (self.weight * p * (1 - p))[:, None]).T @ slopes
            information += 2 * self.penalty_matrix
            return Fisher(*self._gradient(w, log_odds, slopes), information)

    def _gradient(self, w: Vector, log_odds: Vector, slopes: Slopes) -> Gradient:
        against = np.where(self.recalled > 0, -log_odds, log_odds)
        pull = self.penalty_matrix @ (w - self.centre)
        loss = self.weight @ np.logaddexp(0.0, against) + (w - self.centre) @ pull
        surprise = self.weight * (expit(log_odds) - self.recalled)
        return Gradient(float(loss), surprise @ slopes + 2 * pull)


def _allow_non_finite() -> np.errstate:
    """Silence warnings about numbers that are not finite; callers refuse them as results."""
    return np.errstate(over="ignore", invalid="ignore")


def log_loss_of(
    log_odds: LogOdds,
    history: History,
    rows: IntArray,
    weight: Vector,
    centre: Vector,
    penalty_matrix: Vector,
) -> LogLoss:
    """Return the loss of a model at some reviews of a log."""
    reviews = history.reviews
    function = log_odds.at(history, rows, reviews.elapsed[rows])
    recalled = reviews.recalled[rows].astype(np.float64)
    return LogLoss(function, recalled, weight, centre, penalty_matrix)
