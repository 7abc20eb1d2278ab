"""Proper scores: their expectation is best for the true probability.

Natural logarithms throughout. A score that cannot be defined is NaN: a skill against the
base rate where only one outcome happened, and everything where there are no reviews.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from srs_eval.metrics.sketch import Sketch, SketchMetric
from srs_eval.metrics.sums import OneCell
from srs_eval.metrics.validate import paired
from srs_eval.nouns import BoolArray, FloatArray, Predictions

# Predictions are cast to float64 and kept this far from 0 and 1, whatever their own
# precision, so that a certain and wrong prediction always costs 36.04 nats.
CLIP = 2.0**-52


class ScoreTotals(NamedTuple):
    """Totals over reviews, from which the proper scores are computed."""

    n: float
    recalled: float
    log_loss: float
    squares: float
    residual: float
    certain_wrong: float

    @property
    def base_rate(self) -> float:
        """Share of the reviews that were recalled."""
        return self.recalled / self.n

    @property
    def entropy(self) -> float:
        """Log loss of the base rate, in nats; NaN where only one outcome happened."""
        base = self.base_rate
        if not 0 < base < 1:
            return math.nan
        return -base * math.log(base) - (1 - base) * math.log1p(-base)


@dataclass(frozen=True, slots=True)
class ScoreSums(OneCell):
    """Sums for the proper scores."""

    def values(self, predictions: Predictions) -> Sequence[FloatArray | BoolArray]:
        """Return the columns of `ScoreTotals`."""
        p = predictions.p.astype(np.float64, copy=False)
        recalled = predictions.recalled
        error = p - recalled
        high, low = p > 1 - CLIP, p < CLIP
        return (
            np.ones(len(p), np.bool_),
            recalled,
            log_losses(p, recalled),
            error * error,
            error,
            np.where(recalled, low, high),
        )


SCORES = ScoreSums()


def score_totals(sketch: Sketch) -> ScoreTotals:
    """Return the totals of a sketch."""
    return ScoreTotals(*sketch[SCORES][0].tolist())


def log_losses(p: FloatArray, recalled: BoolArray) -> FloatArray:
    """Negative log-likelihood of each outcome [n], or [n, k], in nats; NaN where p is."""
    exact = p.astype(np.float64, copy=False)
    likelihood = np.where(recalled, exact, 1 - exact)
    np.clip(likelihood, CLIP, 1 - CLIP, out=likelihood)
    return np.negative(np.log(likelihood, out=likelihood), out=likelihood)


class LogLoss(SketchMetric):
    """Mean negative log-likelihood, in nats: 0 is perfect, and lower is better.

    At most 36.05, because predictions are clipped to [2**-52, 1 - 2**-52].

    Examples
    --------
    >>> round(LogLoss().of_outcomes([0.9, 0.8, 0.3], [True, True, False]), 6)
    0.228393
    """

    name, better, section = "log_loss", "lower", "test"
    bounds = (0.0, math.inf)
    needs = (SCORES,)

    def of(self, sketch: Sketch) -> float:
        totals = score_totals(sketch)
        return totals.log_loss / totals.n

    def per_review(self, predictions: Predictions) -> FloatArray:
        """Score each review on its own, in nats [n]."""
        return log_losses(*paired(predictions.p, predictions.recalled))


class Brier(SketchMetric):
    """Mean squared difference between prediction and outcome; lower is better.

    References
    ----------
    Brier (1950), doi:10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2.

    Examples
    --------
    >>> round(Brier().of_outcomes([0.9, 0.8, 0.3], [True, True, False]), 6)
    0.046667
    """

    name, better, section = "brier", "lower", "test"
    bounds = (0.0, 1.0)
    needs = (SCORES,)

    def of(self, sketch: Sketch) -> float:
        totals = score_totals(sketch)
        return totals.squares / totals.n

    def per_review(self, predictions: Predictions) -> FloatArray:
        """Score each review on its own, in [0, 1] [n]."""
        p, recalled = paired(predictions.p, predictions.recalled)
        squares: FloatArray = (p.astype(np.float64, copy=False) - recalled) ** 2
        return squares


class NormalizedEntropy(SketchMetric):
    """Log loss in units of the entropy of the base rate: 0 is perfect, 1 is the base rate.

    Equal to 1 minus scikit-learn's ``d2_log_loss_score``. Lower is better; above 1 means
    worse than always predicting the mean outcome of these very reviews. NaN if only one outcome
    happened.

    References
    ----------
    He et al. (2014), doi:10.1145/2648584.2648589.

    Examples
    --------
    >>> NormalizedEntropy().of_outcomes([0.75, 0.75, 0.75, 0.75], [1, 1, 1, 0])
    1.0
    """

    name, better, section = "normalized_entropy", "lower", "test"
    bounds = (0.0, math.inf)
    needs = (SCORES,)

    def of(self, sketch: Sketch) -> float:
        totals = score_totals(sketch)
        return totals.log_loss / totals.n / totals.entropy


class BrierSkill(SketchMetric):
    """Improvement of the Brier score over the base rate: 1 is perfect, higher is better.

    0 is no better than the mean outcome of these very reviews. NaN if only one outcome happened.

    Examples
    --------
    >>> BrierSkill().of_outcomes([0.75, 0.75, 0.75, 0.75], [1, 1, 1, 0])
    0.0
    """

    name, better, section = "brier_skill", "higher", "test"
    bounds = (-math.inf, 1.0)
    needs = (SCORES,)

    def of(self, sketch: Sketch) -> float:
        totals = score_totals(sketch)
        base = totals.base_rate
        if not 0 < base < 1:
            return math.nan
        return 1 - totals.squares / totals.n / (base * (1 - base))


class LogLossCertainWrong(SketchMetric):
    """Number of predictions that were certain and wrong: each costs 36.04 nats."""

    name, better, section = "log_loss_certain_wrong", "lower", "test"
    bounds = (0.0, math.inf)
    needs = (SCORES,)

    def of(self, sketch: Sketch) -> float:
        return score_totals(sketch).certain_wrong
