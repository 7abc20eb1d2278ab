"""Predictions at the thresholds that a scheduler acts on: confusion statistics, and bias.

A review is predicted to be recalled if ``p >= threshold``. The threshold is rounded to the
precision of the predictions first: 0.9 in float32 lies below 0.9 in float64, and schedulers aim at
0.9 exactly.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Literal

import numpy as np

from srs_eval.errors import ConfigError
from srs_eval.metrics.metric import Metric, metric
from srs_eval.metrics.significance import LEVEL, wilson_interval
from srs_eval.metrics.tally import Tally

DEFAULT_THRESHOLDS = (0.7, 0.8, 0.9, 0.95)
# The bias at a threshold is that of predictions closer to it than this.
NEARBY = Decimal("0.02")
_BIAS = "threshold_bias_at_"

Statistic = Literal["tpr", "fnr", "fpr", "tnr", "ppv", "fdr", "for", "npv"]
# What each statistic counts, and the others that meet its condition: that the review was recalled
# or forgotten, or that recall was predicted or not.
RATES: Mapping[Statistic, tuple[str, str]] = {
    **{"tpr": ("tp", "fn"), "fnr": ("fn", "tp"), "fpr": ("fp", "tn"), "tnr": ("tn", "fp")},
    **{"ppv": ("tp", "fp"), "fdr": ("fp", "tp"), "for": ("fn", "tn"), "npv": ("tn", "fn")},
}
HIGHER_IS_BETTER = frozenset({"tpr", "tnr", "ppv", "npv"})


def confusion_rate(tally: Tally, statistic: Statistic, threshold: float) -> float:
    """One of the eight statistics `RATES`, in [0, 1]; NaN if nothing meets its condition.

    >>> from srs_eval.metrics.tally import tally
    >>> confusion_rate(tally([0.95, 0.8, 0.9], [1, 1, 0]), "ppv", 0.9)
    0.5
    """
    counts = tally.confusion(threshold)
    counted, others = (counts[name] for name in RATES[statistic])
    return counted / (counted + others) if counted + others else math.nan


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
    bias, reviews = _near(tally, threshold)
    return bias / reviews if reviews else math.nan


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
    low, high = (float(tally.precision.type(bound)) for bound in nearby(threshold))
    return slice(*(int(np.searchsorted(tally.p, low, "right")), tally.first_at_least(high)))


def _near(tally: Tally, threshold: float) -> tuple[float, float]:
    """Sum of predictions less outcomes near a threshold, and number of these reviews."""
    rows = rows_near(tally, threshold)
    return float(tally.residual[rows].sum()), float(tally.count[rows].sum())


def threshold_metrics(thresholds: Sequence[float]) -> list[Metric]:
    """Return all eight confusion statistics, and then the bias, at each threshold in [0, 1].

    >>> [metric.name for metric in threshold_metrics([0.95])][:2]
    ['confusion_tpr_at_0_95', 'confusion_fnr_at_0_95']
    """
    outside = [threshold for threshold in thresholds if not 0 <= threshold <= 1]
    if outside:
        raise ConfigError(f"thresholds {outside} are not in [0, 1]")
    at = {
        np.format_float_positional(float(threshold), trim="-").replace(".", "_"): float(threshold)
        for threshold in thresholds
    }
    rates = [
        Metric(
            f"confusion_{statistic}_at_{name}",
            partial(confusion_rate, statistic=statistic, threshold=threshold),
            "higher" if statistic in HIGHER_IS_BETTER else "lower",
            (0.0, 1.0),
        )
        for name, threshold in at.items()
        for statistic in RATES
    ]
    return rates + [
        Metric(f"{_BIAS}{name}", partial(threshold_bias, threshold=value), "zero", (-1.0, 1.0))
        for name, value in at.items()
    ]


def bias_threshold(name: str) -> float | None:
    """Return the threshold of a bias by the name of its metric; None of any other metric.

    >>> bias_threshold("threshold_bias_at_0_95")
    0.95
    """
    threshold = re.fullmatch(rf"{_BIAS}([01](?:_\d+)?)", name)
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
    return tuple(_row(tally, threshold, level) for threshold in thresholds)


def _row(tally: Tally, threshold: float, level: float) -> dict[str, float]:
    counts = tally.confusion(threshold)
    row = {"threshold": threshold, **counts}
    for statistic, (counted, other) in RATES.items():
        n = counts[counted] + counts[other]
        low, high = wilson_interval(counts[counted], n, level=level)
        row[statistic] = counts[counted] / n if n else math.nan
        row |= {f"{statistic}_low": float(low), f"{statistic}_high": float(high)}
    bias, reviews = _near(tally, threshold)
    return row | {"bias": bias / reviews if reviews else math.nan, "nearby": reviews}
