"""Proper scores: an honest belief is the best thing a model can predict.

Natural logarithms throughout. A score that cannot be defined is NaN: a skill against the
base rate where only one outcome happened, and everything where there are no reviews.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from srs_eval.metrics.validate import paired
from srs_eval.nouns import Better, BoolArray, FloatArray, Predictions

# Predictions are cast to float64 and kept this far from 0 and 1, whatever their own
# precision, so that a certain and wrong prediction always costs 36.04 nats.
CLIP = 2.0**-52


def log_loss(p: ArrayLike, recalled: ArrayLike) -> float:
    """Mean negative log-likelihood, in nats: 0 is perfect, and lower is better.

    Parameters
    ----------
    p : float [n], in [0, 1]
        Predicted probability of recall.
    recalled : bool [n]
        Outcome.

    Returns
    -------
    float
        In [0, 36.05]: predictions are clipped to [2**-52, 1 - 2**-52]. NaN if n is 0.

    Examples
    --------
    >>> round(log_loss([0.9, 0.8, 0.3], [True, True, False]), 6)
    0.228393
    """
    return _mean(_log_losses(*paired(p, recalled)))


def normalized_entropy(p: ArrayLike, recalled: ArrayLike) -> float:
    """Log loss in units of the entropy of the base rate: 0 is perfect, 1 is the base rate.

    Equal to 1 minus scikit-learn's ``d2_log_loss_score``. Lower is better; above 1 means
    worse than always predicting the mean outcome of these very reviews.

    Returns
    -------
    float
        NaN if only one outcome happened.

    References
    ----------
    He et al. (2014), doi:10.1145/2648584.2648589.

    Examples
    --------
    >>> normalized_entropy([0.75, 0.75, 0.75, 0.75], [1, 1, 1, 0])
    1.0
    """
    probability, outcome = paired(p, recalled)
    base = base_rate(outcome)
    if not 0 < base < 1:
        return math.nan
    entropy = -base * math.log(base) - (1 - base) * math.log1p(-base)
    return _mean(_log_losses(probability, outcome)) / entropy


def brier(p: ArrayLike, recalled: ArrayLike) -> float:
    """Mean squared difference between prediction and outcome, in [0, 1]; lower is better.

    References
    ----------
    Brier (1950), doi:10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2.

    Examples
    --------
    >>> round(brier([0.9, 0.8, 0.3], [True, True, False]), 6)
    0.046667
    """
    return _mean(_squares(*paired(p, recalled)))


def brier_skill(p: ArrayLike, recalled: ArrayLike) -> float:
    """Improvement of the Brier score over the base rate: 1 is perfect, higher is better.

    Returns
    -------
    float
        At most 1; 0 is no better than the mean outcome of these very reviews. NaN if only
        one outcome happened.

    Examples
    --------
    >>> brier_skill([0.75, 0.75, 0.75, 0.75], [1, 1, 1, 0])
    0.0
    """
    probability, outcome = paired(p, recalled)
    base = base_rate(outcome)
    if not 0 < base < 1:
        return math.nan
    return 1 - _mean(_squares(probability, outcome)) / (base * (1 - base))


def count_clipped(p: ArrayLike, recalled: ArrayLike) -> int:
    """Count the predictions so certain that the log loss clips them.

    Examples
    --------
    >>> count_clipped([1.0, 0.0, 0.5], [1, 1, 1])
    2
    """
    probability, _ = paired(p, recalled)
    return int(np.count_nonzero(_sure_recall(probability) | _sure_lapse(probability)))


def count_certain_wrong(p: ArrayLike, recalled: ArrayLike) -> int:
    """Count the predictions that were certain and wrong: each costs 36.04 nats.

    Examples
    --------
    >>> count_certain_wrong([1.0, 0.0, 0.5], [1, 1, 1])
    1
    """
    probability, outcome = paired(p, recalled)
    wrong = np.where(outcome, _sure_lapse(probability), _sure_recall(probability))
    return int(np.count_nonzero(wrong))


def base_rate(recalled: BoolArray) -> float:
    """Share of the reviews that were recalled; NaN if there are none."""
    return float(np.count_nonzero(recalled)) / len(recalled) if len(recalled) else math.nan


def _log_losses(p: FloatArray, recalled: BoolArray) -> FloatArray:
    """Negative log-likelihood of each outcome."""
    exact = p.astype(np.float64, copy=False)
    likelihood = np.where(recalled, exact, 1 - exact)
    np.clip(likelihood, CLIP, 1 - CLIP, out=likelihood)
    return np.negative(np.log(likelihood, out=likelihood), out=likelihood)


def _squares(p: FloatArray, recalled: BoolArray) -> FloatArray:
    """Squared error of each prediction."""
    error = p.astype(np.float64, copy=False) - recalled
    squares: FloatArray = np.multiply(error, error, out=error)
    return squares


def _sure_recall(p: FloatArray) -> BoolArray:
    """Which predictions are clipped from above."""
    return p.astype(np.float64, copy=False) > 1 - CLIP


def _sure_lapse(p: FloatArray) -> BoolArray:
    """Which predictions are clipped from below."""
    return p.astype(np.float64, copy=False) < CLIP


def _mean(values: FloatArray) -> float:
    """Mean, or NaN of nothing."""
    return float(values.mean()) if values.size else math.nan


@dataclass(frozen=True, slots=True)
class LogLoss:
    """Mean negative log-likelihood: see `log_loss`."""

    name: ClassVar[str] = "log_loss"
    better: ClassVar[Better] = "lower"
    section: ClassVar[str] = "test"
    bounds: ClassVar[tuple[float, float]] = (0.0, math.inf)

    def __call__(self, predictions: Predictions) -> float:
        """Score the predictions."""
        return log_loss(predictions.p, predictions.recalled)

    def per_review(self, predictions: Predictions) -> FloatArray:
        """Score each review on its own, in nats [n]."""
        return _log_losses(*paired(predictions.p, predictions.recalled))


@dataclass(frozen=True, slots=True)
class Brier:
    """Mean squared error: see `brier`."""

    name: ClassVar[str] = "brier"
    better: ClassVar[Better] = "lower"
    section: ClassVar[str] = "test"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __call__(self, predictions: Predictions) -> float:
        """Score the predictions."""
        return brier(predictions.p, predictions.recalled)

    def per_review(self, predictions: Predictions) -> FloatArray:
        """Score each review on its own, in [0, 1] [n]."""
        return _squares(*paired(predictions.p, predictions.recalled))


@dataclass(frozen=True, slots=True)
class NormalizedEntropy:
    """Log loss relative to the base rate's: see `normalized_entropy`."""

    name: ClassVar[str] = "normalized_entropy"
    better: ClassVar[Better] = "lower"
    section: ClassVar[str] = "test"
    bounds: ClassVar[tuple[float, float]] = (0.0, math.inf)

    def __call__(self, predictions: Predictions) -> float:
        """Score the predictions."""
        return normalized_entropy(predictions.p, predictions.recalled)


@dataclass(frozen=True, slots=True)
class BrierSkill:
    """Improvement of the Brier score over the base rate: see `brier_skill`."""

    name: ClassVar[str] = "brier_skill"
    better: ClassVar[Better] = "higher"
    section: ClassVar[str] = "test"
    bounds: ClassVar[tuple[float, float]] = (-math.inf, 1.0)

    def __call__(self, predictions: Predictions) -> float:
        """Score the predictions."""
        return brier_skill(predictions.p, predictions.recalled)


@dataclass(frozen=True, slots=True)
class LogLossClipped:
    """How many predictions the log loss clips: see `count_clipped`."""

    name: ClassVar[str] = "log_loss_clipped"
    better: ClassVar[Better] = "neither"
    section: ClassVar[str] = "test"
    bounds: ClassVar[tuple[float, float]] = (0.0, math.inf)

    def __call__(self, predictions: Predictions) -> float:
        """Count them."""
        return float(count_clipped(predictions.p, predictions.recalled))


@dataclass(frozen=True, slots=True)
class LogLossCertainWrong:
    """How many predictions were certain and wrong: see `count_certain_wrong`."""

    name: ClassVar[str] = "log_loss_certain_wrong"
    better: ClassVar[Better] = "lower"
    section: ClassVar[str] = "test"
    bounds: ClassVar[tuple[float, float]] = (0.0, math.inf)

    def __call__(self, predictions: Predictions) -> float:
        """Count them."""
        return float(count_certain_wrong(predictions.p, predictions.recalled))
