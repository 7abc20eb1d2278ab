"""The receiver operating characteristic, for drawing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from srs_eval.data.reviews import FloatArray
from srs_eval.metrics.scores import auc
from srs_eval.metrics.tally import Tally
from srs_eval.metrics.threshold import DEFAULT_THRESHOLDS


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
    fpr, tpr = (
        (before[-1] - before[::-1]) / (float(before[-1]) or math.nan) for before in tally.below
    )
    above = [len(tally) - tally.first_at_least(threshold) for threshold in thresholds]
    at = tuple(
        (float(threshold), float(fpr[number]), float(tpr[number]))
        for threshold, number in zip(thresholds, above, strict=True)
    )
    if not tally.has_both_outcomes:
        return RocCurve(np.empty(0), np.empty(0), at, math.nan)
    if len(fpr) > points:
        even = np.linspace(0, 1, points - 1)
        chosen = np.unique(np.r_[0, np.searchsorted(fpr, even, side="right") - 1])
        fpr, tpr = fpr[chosen], tpr[chosen]
    return RocCurve(fpr, tpr, at, auc(tally))
