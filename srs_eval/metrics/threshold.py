"""Predictions at the thresholds that a scheduler acts on: confusion statistics, bias, and ROC.

A review is predicted to be recalled if ``p >= threshold``. The threshold is rounded to the
precision of the predictions first: 0.9 in float32 lies below 0.9 in float64, and schedulers aim at
0.9 exactly.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Literal

import numpy as np

from srs_eval.data.reviews import FloatArray
from srs_eval.errors import ConfigError
from srs_eval.metrics.metric import Better, Metric, as_metric, metric
from srs_eval.metrics.scores import auc
from srs_eval.metrics.significance import LEVEL, wilson_interval
from srs_eval.metrics.tally import Tally

DEFAULT_THRESHOLDS = (0.7, 0.8, 0.9, 0.95)
# The bias at a threshold is that of predictions closer to it than this.
NEARBY = Decimal("0.02")

Statistic = Literal["tpr", "fnr", "fpr", "tnr", "ppv", "fdr", "for", "npv"]
# What each statistic counts, and the others that meet its condition: that the review was recalled
# or forgotten, or that recall was predicted or not.
RATES: Mapping[Statistic, tuple[str, str]] = {
    **{"tpr": ("tp", "fn"), "fnr": ("fn", "tp"), "fpr": ("fp", "tn"), "tnr": ("tn", "fp")},
    **{"ppv": ("tp", "fp"), "fdr": ("fp", "tp"), "for": ("fn", "tn"), "npv": ("tn", "fn")},
}


def confusion_rate(tally: Tally, statistic: Statistic, threshold: float) -> float:
    """One of the eight statistics `RATES`, in [0, 1]; NaN if nothing meets its condition.

    >>> from srs_eval.metrics.tally import tally
    >>> confusion_rate(tally([0.95, 0.8, 0.9], [1, 1, 0]), "ppv", 0.9)
    0.5
    """
    counts, (name, other) = tally.confusion(threshold), RATES[statistic]
    n = counts[name] + counts[other]
    return counts[name] / n if n else math.nan


@metric("zero", (-1.0, 1.0))
def threshold_bias(tally: Tally, threshold: float = 0.9) -> float:
    """Mean prediction less share of recalls, over the predictions near a threshold.

    The error of a scheduler that aims at the threshold, in [-1, 1] and best at 0: above 0, people
    forget more than desired. Predictions less than 0.02 from it count: see `nearby`. NaN if there
    are none.

    >>> from srs_eval.metrics.tally import tally
    >>> round(threshold_bias(tally([0.91, 0.89, 0.5], [1, 0, 0])), 6)
    0.4
    """
    rows = rows_near(tally, threshold)
    reviews = float(tally.count[rows].sum())
    return float(tally.residual[rows].sum()) / reviews if reviews else math.nan


def nearby(threshold: float) -> tuple[float, float]:
    """Bounds between which predictions are near a threshold, themselves not included.

    They are decimal numbers: 0.1 and 0.02 more is 0.12, as it would not be in binary. Like the
    threshold, they are then rounded to the precision of the predictions.

    >>> nearby(0.7)
    (0.68, 0.72)
    """
    middle = Decimal(repr(float(threshold)))
    return float(middle - NEARBY), float(middle + NEARBY)


def rows_near(tally: Tally, threshold: float) -> slice:
    """Rows of a tally whose predictions are near a threshold."""
    low, high = nearby(threshold)
    first = int(np.searchsorted(tally.p, float(tally.precision.type(low)), "right"))
    return slice(first, tally.first_at_least(high))


def threshold_metrics(thresholds: Sequence[float]) -> list[Metric]:
    """Return all eight confusion statistics, and then the bias, at each threshold in [0, 1].

    >>> [metric.name for metric in threshold_metrics([0.95])][:2]
    ['confusion_tpr_at_0_95', 'confusion_fnr_at_0_95']
    """
    rates, biases = [], []
    for threshold in dict.fromkeys(map(float, thresholds)):
        if not 0 <= threshold <= 1:
            raise ConfigError(f"threshold {threshold:g} is not in [0, 1]")
        at = f"at_{np.format_float_positional(threshold, trim='-')}".replace(".", "_")
        for statistic in RATES:
            rate = partial(confusion_rate, statistic=statistic, threshold=threshold)
            better: Better = "higher" if statistic in ("tpr", "tnr", "ppv", "npv") else "lower"
            rates.append(Metric(f"confusion_{statistic}_{at}", rate, better, (0.0, 1.0)))
        bias = partial(threshold_bias, threshold=threshold)
        biases.append(as_metric(bias, f"threshold_bias_{at}"))
    return rates + biases


def bias_threshold(name: str) -> float | None:
    """Return the threshold of a bias by the name of its metric; None of any other metric.

    >>> bias_threshold("threshold_bias_at_0_95")
    0.95
    """
    threshold = re.fullmatch(r"threshold_bias_at_([01](?:_\d+)?)", name)
    return None if threshold is None else float(threshold[1].replace("_", "."))


def threshold_rows(
    tally: Tally, thresholds: Iterable[float], *, level: float = LEVEL
) -> tuple[dict[str, float], ...]:
    """Return counts, rates, intervals and bias for each threshold.

    Keys are ``threshold``; the counts ``tp``, ``fp``, ``fn``, ``tn``; each of the eight statistics
    with ``_low`` and ``_high``, Wilson's interval, which takes reviews as independent; ``bias`` and
    ``nearby``, the mean prediction less share of recalls near the threshold, and how many reviews
    that are.
    """
    rows = []
    for threshold in thresholds:
        counts = tally.confusion(threshold)
        row = {"threshold": threshold, **counts}
        for statistic, (name, other) in RATES.items():
            n = counts[name] + counts[other]
            low, high = wilson_interval(counts[name], n, level=level)
            row[statistic] = confusion_rate(tally, statistic, threshold)
            row |= {f"{statistic}_low": float(low), f"{statistic}_high": float(high)}
        row["bias"] = threshold_bias(tally, threshold)
        row["nearby"] = float(tally.count[rows_near(tally, threshold)].sum())
        rows.append(row)
    return tuple(rows)


@dataclass(frozen=True, slots=True)
class RocCurve:
    """A receiver operating characteristic, thinned for drawing."""

    # [m]: From (0, 0) to (1, 1); empty where one of the outcomes never happened
    fpr: FloatArray
    tpr: FloatArray
    # Threshold, false and true positive rate of the rule "recalled if p >= threshold"
    at: tuple[tuple[float, float, float], ...]
    auc: float  # Area under the complete curve; NaN where it is not defined


def roc_of(
    tally: Tally, *, thresholds: Sequence[float] = DEFAULT_THRESHOLDS, points: int = 2001
) -> RocCurve:
    """Compute the ROC curve of a tally, with the operating points of some thresholds.

    At most `points` points are kept, evenly along the false positive rate.
    """
    at = []
    for threshold in thresholds:
        rates = (confusion_rate(tally, "fpr", threshold), confusion_rate(tally, "tpr", threshold))
        at.append((float(threshold), *rates))
    if not (tally.n_forgotten and tally.n_recalled):
        return RocCurve(np.empty(0), np.empty(0), tuple(at), math.nan)
    whole = tally.below[:, -1:]
    fpr, tpr = (whole - tally.below[:, ::-1]) / whole
    if len(fpr) > points:
        even = np.linspace(0, 1, points - 1)
        chosen = np.unique(np.r_[0, np.searchsorted(fpr, even, side="right") - 1])
        fpr, tpr = fpr[chosen], tpr[chosen]
    return RocCurve(fpr, tpr, tuple(at), auc(tally))
