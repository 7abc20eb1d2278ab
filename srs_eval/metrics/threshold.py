"""The eight confusion statistics at the predictions a scheduler acts on.

A review is predicted to be recalled if ``p >= threshold``. The threshold is rounded to
the precision of the predictions first: 0.9 in float32 lies below 0.9 in float64, and
schedulers aim at 0.9 exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from srs_eval.errors import ConfigError
from srs_eval.metrics.validate import paired
from srs_eval.nouns import Better, FloatArray, Predictions

DEFAULT_THRESHOLDS = (0.7, 0.8, 0.9, 0.95)

Statistic = Literal["tpr", "fnr", "fpr", "tnr", "ppv", "fdr", "for", "npv"]
STATISTICS: tuple[Statistic, ...] = get_args(Statistic)
HIGHER_IS_BETTER = frozenset({"tpr", "tnr", "ppv", "npv"})


@dataclass(frozen=True, slots=True)
class ConfusionCounts:
    """How many reviews were predicted to be recalled or not, and were or were not."""

    true_positive: int
    false_positive: int
    false_negative: int
    true_negative: int

    def rate(self, statistic: Statistic) -> float:
        """One of the eight conditional rates, in [0, 1]; NaN if nothing meets its condition.

        ``tpr`` and ``fnr`` are given that the review was recalled, ``fpr`` and ``tnr``
        that it was forgotten, ``ppv`` and ``fdr`` that recall was predicted, ``for`` and
        ``npv`` that it was not.
        """
        hit, alarm = self.true_positive, self.false_positive
        miss, reject = self.false_negative, self.true_negative
        counted, other = {
            "tpr": (hit, miss),
            "fnr": (miss, hit),
            "fpr": (alarm, reject),
            "tnr": (reject, alarm),
            "ppv": (hit, alarm),
            "fdr": (alarm, hit),
            "for": (miss, reject),
            "npv": (reject, miss),
        }[statistic]
        return counted / (counted + other) if counted + other else math.nan


def confusion_counts(p: ArrayLike, recalled: ArrayLike, threshold: float) -> ConfusionCounts:
    """Count the confusion matrix of the rule "recalled if p >= threshold".

    Parameters
    ----------
    p : float [n], in [0, 1]
        Predicted probability of recall.
    recalled : bool [n]
        Outcome.
    threshold : float, in [0, 1]
        Compared in the precision of `p`.

    Examples
    --------
    >>> confusion_counts([0.95, 0.9, 0.6], [True, False, True], 0.9)
    ConfusionCounts(true_positive=1, false_positive=1, false_negative=1, true_negative=0)
    """
    probability, outcome = paired(p, recalled)
    predicted = probability >= probability.dtype.type(threshold)
    hit = int(np.count_nonzero(predicted & outcome))
    alarm = int(np.count_nonzero(predicted)) - hit
    miss = int(np.count_nonzero(outcome)) - hit
    return ConfusionCounts(hit, alarm, miss, len(outcome) - hit - alarm - miss)


@dataclass(frozen=True, slots=True)
class Confusion:
    """One confusion statistic at one threshold: see `confusion_counts`.

    Parameters
    ----------
    statistic : str
        ``tpr``, ``fnr``, ``fpr``, ``tnr``, ``ppv``, ``fdr``, ``for`` or ``npv``.
    threshold : float, in [0, 1]
        Prediction from which on recall is predicted.

    Examples
    --------
    >>> Confusion("tpr", 0.95).name
    'confusion_tpr_at_0_95'
    """

    statistic: Statistic
    threshold: float
    section: ClassVar[str] = "threshold"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __post_init__(self) -> None:
        """Refuse what is not a statistic or not a probability."""
        if self.statistic not in STATISTICS:
            raise ConfigError(
                f"confusion statistic {self.statistic!r} is not one of {', '.join(STATISTICS)}"
            )
        if not 0 <= self.threshold <= 1:
            raise ConfigError(f"confusion threshold {self.threshold} is not in [0, 1]")

    @property
    def name(self) -> str:
        """Statistic and threshold."""
        threshold = np.format_float_positional(float(self.threshold), trim="-")
        return f"confusion_{self.statistic}_at_{threshold.replace('.', '_')}"

    @property
    def better(self) -> Better:
        """Whether the statistic counts right or wrong predictions."""
        return "higher" if self.statistic in HIGHER_IS_BETTER else "lower"

    def __call__(self, predictions: Predictions) -> float:
        """Score the predictions."""
        counts = confusion_counts(predictions.p, predictions.recalled, self.threshold)
        return counts.rate(self.statistic)

    def terms(self, predictions: Predictions) -> tuple[FloatArray, FloatArray]:
        """Which reviews [n] are counted, and of which ones: the statistic is their ratio."""
        probability, outcome = paired(predictions.p, predictions.recalled)
        predicted = probability >= probability.dtype.type(self.threshold)
        condition, counted = {
            "tpr": (outcome, predicted),
            "fnr": (outcome, ~predicted),
            "fpr": (~outcome, predicted),
            "tnr": (~outcome, ~predicted),
            "ppv": (predicted, outcome),
            "fdr": (predicted, ~outcome),
            "for": (~predicted, outcome),
            "npv": (~predicted, ~outcome),
        }[self.statistic]
        return (condition & counted).astype(np.float64), condition.astype(np.float64)


def confusion_statistics(
    thresholds: Sequence[float] = DEFAULT_THRESHOLDS,
) -> tuple[Confusion, ...]:
    """All eight statistics at each threshold.

    Examples
    --------
    >>> len(confusion_statistics([0.9]))
    8
    """
    return tuple(
        Confusion(statistic, float(threshold))
        for threshold in thresholds
        for statistic in STATISTICS
    )
