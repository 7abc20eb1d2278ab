"""The eight confusion statistics at the predictions a scheduler acts on.

A review is predicted to be recalled if ``p >= threshold``. The threshold is rounded to
the precision of the predictions first: 0.9 in float32 lies below 0.9 in float64, and
schedulers aim at 0.9 exactly.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from decimal import Decimal
from functools import cache
from typing import Literal, get_args

import numpy as np

from srs_eval.errors import ConfigError
from srs_eval.metrics.significance import LEVEL, wilson_interval
from srs_eval.metrics.sketch import Sketch, SketchMetric, sums_of
from srs_eval.metrics.sums import OneCell, Sums
from srs_eval.nouns import Better, BoolArray, FloatArray, Predictions

DEFAULT_THRESHOLDS = (0.7, 0.8, 0.9, 0.95)
# The bias at a threshold is that of predictions closer to it than this.
NEARBY = Decimal("0.02")
_BIAS = "threshold_bias_at_"

Statistic = Literal["tpr", "fnr", "fpr", "tnr", "ppv", "fdr", "for", "npv"]
STATISTICS: tuple[Statistic, ...] = get_args(Statistic)
HIGHER_IS_BETTER = frozenset({"tpr", "tnr", "ppv", "npv"})


@dataclass(frozen=True, slots=True)
class ConfusionCounts:
    """How many reviews were predicted to be recalled or not, and were or were not.

    Whole numbers, except where reviews are weighted.
    """

    true_positive: float
    false_positive: float
    false_negative: float
    true_negative: float

    def rate(self, statistic: Statistic) -> float:
        """One of the eight conditional rates, in [0, 1]; NaN if nothing meets its condition.

        ``tpr`` and ``fnr`` are given that the review was recalled, ``fpr`` and ``tnr``
        that it was forgotten, ``ppv`` and ``fdr`` that recall was predicted, ``for`` and
        ``npv`` that it was not.
        """
        counted, conditioned = self._of_which(statistic)
        return counted / conditioned if conditioned else math.nan

    def interval(self, statistic: Statistic, *, level: float = LEVEL) -> tuple[float, float]:
        """Wilson's interval of a rate, assuming independent reviews; NaN if the rate is."""
        return wilson_interval(*self._of_which(statistic), level=level)

    def _of_which(self, statistic: Statistic) -> tuple[float, float]:
        """How many reviews a rate counts, and of how many."""
        counted, other = _OF_WHICH[statistic]
        number: float = getattr(self, counted)
        return number, number + getattr(self, other)


# What each statistic counts, and the others that meet its condition.
_OF_WHICH: dict[Statistic, tuple[str, str]] = {
    "tpr": ("true_positive", "false_negative"),
    "fnr": ("false_negative", "true_positive"),
    "fpr": ("false_positive", "true_negative"),
    "tnr": ("true_negative", "false_positive"),
    "ppv": ("true_positive", "false_positive"),
    "fdr": ("false_positive", "true_positive"),
    "for": ("false_negative", "true_negative"),
    "npv": ("true_negative", "false_negative"),
}


@dataclass(frozen=True, slots=True)
class ThresholdSums(OneCell):
    """Counts the confusion matrix at a threshold, and adds up the bias of predictions near it.

    The threshold is rounded to the precision of the predictions.
    """

    threshold: float

    def values(self, predictions: Predictions) -> Sequence[FloatArray | BoolArray]:
        """Predicted recalls, those that were right, recalls, and reviews; bias, reviews nearby."""
        p, recalled = predictions.p, predictions.recalled
        predicted = p >= p.dtype.type(self.threshold)
        exact = p.astype(np.float64, copy=False)
        low, high = (p.dtype.type(bound) for bound in nearby(self.threshold))
        near = (p > low) & (p < high)
        every = np.ones(len(p), np.bool_)
        return predicted, predicted & recalled, recalled, every, near * (exact - recalled), near


def nearby(threshold: float) -> tuple[float, float]:
    """Bounds between which predictions are near a threshold, themselves not included.

    They are decimal numbers: 0.1 and 0.02 more is 0.12, as it would not be in binary. Like the
    threshold, they are then rounded to the precision of the predictions.

    >>> nearby(0.7)
    (0.68, 0.72)
    """
    middle = Decimal(repr(float(threshold)))
    return float(middle - NEARBY), float(middle + NEARBY)


def _counts(totals: FloatArray) -> ConfusionCounts:
    """Build the confusion matrix from totals [1, 6]."""
    predicted, hit, recalled, n = totals[0, :4].tolist()
    return ConfusionCounts(hit, predicted - hit, recalled - hit, n - recalled - (predicted - hit))


@dataclass(frozen=True, slots=True)
class Confusion(SketchMetric):
    """One confusion statistic at one threshold, of the rule "recalled if p >= threshold".

    >>> Confusion("tpr", 0.95).name
    'confusion_tpr_at_0_95'
    """

    statistic: Statistic
    threshold: float  # In [0, 1]: Prediction from which on recall is predicted
    section = "threshold"
    bounds = (0.0, 1.0)

    def __post_init__(self) -> None:
        if self.statistic not in STATISTICS:
            raise ConfigError(
                f"confusion statistic {self.statistic!r} is not one of {', '.join(STATISTICS)}"
            )
        _refuse_threshold(self.threshold)

    @property
    def name(self) -> str:
        return f"confusion_{self.statistic}_at_{_in_words(self.threshold)}"

    @property
    def better(self) -> Better:
        """Whether the statistic counts right or wrong predictions."""
        return "higher" if self.statistic in HIGHER_IS_BETTER else "lower"

    @property
    def needs(self) -> tuple[Sums, ...]:
        return (_sums_at(self.threshold),)

    def of(self, sketch: Sketch) -> float:
        return _counts(sketch[self.needs[0]]).rate(self.statistic)


@dataclass(frozen=True, slots=True)
class ThresholdBias(SketchMetric):
    """Mean prediction less share of recalls, over the predictions near a threshold.

    The error of a scheduler that aims at the threshold: above 0, people forget more than desired.
    """

    threshold: float  # In [0, 1]: Predictions less than 0.02 from it count: see `nearby`
    better, section = "zero", "threshold"
    bounds = (-1.0, 1.0)

    def __post_init__(self) -> None:
        _refuse_threshold(self.threshold)

    @property
    def name(self) -> str:
        """``threshold_bias_at_`` and the threshold."""
        return f"{_BIAS}{_in_words(self.threshold)}"

    @property
    def needs(self) -> tuple[Sums, ...]:
        return (_sums_at(self.threshold),)

    def of(self, sketch: Sketch) -> float:
        bias, near = sketch[self.needs[0]][0, 4:].tolist()
        return bias / near if near else math.nan


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
        for threshold in dict.fromkeys(thresholds)
        for statistic in STATISTICS
    )


def threshold_biases(
    thresholds: Sequence[float] = DEFAULT_THRESHOLDS,
) -> tuple[ThresholdBias, ...]:
    """Bias of the predictions near each threshold."""
    return tuple(ThresholdBias(float(threshold)) for threshold in dict.fromkeys(thresholds))


def _refuse_threshold(threshold: float) -> None:
    if not 0 <= threshold <= 1:
        raise ConfigError(f"confusion threshold {threshold} is not in [0, 1]")


def bias_threshold(name: str) -> float | None:
    """Return the threshold of a metric `ThresholdBias` by its name; None of any other metric.

    >>> bias_threshold(ThresholdBias(0.95).name)
    0.95
    """
    found = re.fullmatch(rf"{_BIAS}([01](?:_\d+)?)", name)
    return None if found is None else float(found[1].replace("_", "."))


@cache
def _sums_at(threshold: float) -> ThresholdSums:
    """Return the same sums for all metrics of a threshold, which are found by identity then."""
    return ThresholdSums(threshold)


@cache
def _in_words(threshold: float) -> str:
    """Write a threshold as names of metrics have it, such as 0_95."""
    return np.format_float_positional(float(threshold), trim="-").replace(".", "_")


def threshold_rows(
    sketch: Sketch, metrics: Iterable[object], *, level: float = LEVEL
) -> tuple[dict[str, float], ...]:
    """Return counts, rates, intervals and bias for each threshold of some metrics, increasing.

    Keys are ``threshold``; the counts ``tp``, ``fp``, ``fn``, ``tn``; each of the eight statistics
    with ``_low`` and ``_high``, Wilson's interval, which takes reviews as independent; ``bias`` and
    ``nearby``, the mean prediction less share of recalls near the threshold, and how many reviews
    that are.
    """
    found = {sums for sums in sums_of(metrics) if isinstance(sums, ThresholdSums)}
    return tuple(
        _row(sums, sketch, level) for sums in sorted(found, key=lambda sums: sums.threshold)
    )


def _row(sums: ThresholdSums, sketch: Sketch, level: float) -> dict[str, float]:
    """Return counts, rates, intervals and bias for one threshold."""
    totals = sketch[sums]
    counts = _counts(totals)
    bias, nearby = totals[0, 4:].tolist()
    row = dict(
        zip(("threshold", "tp", "fp", "fn", "tn"), (sums.threshold, *astuple(counts)), strict=True)
    )
    for statistic in STATISTICS:
        row[statistic] = counts.rate(statistic)
        row[f"{statistic}_low"], row[f"{statistic}_high"] = counts.interval(statistic, level=level)
    return row | {"bias": bias / nearby if nearby else math.nan, "nearby": nearby}
