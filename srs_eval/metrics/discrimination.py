"""How well predictions separate what will be recalled from what will not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from srs_eval.metrics.sketch import Sketch, SketchMetric
from srs_eval.metrics.tally import Tally
from srs_eval.metrics.threshold import DEFAULT_THRESHOLDS
from srs_eval.nouns import FloatArray


def auc_of(counted: Tally) -> float:
    """Compute the area under the ROC curve of a tally, ties counting half.

    NaN with one outcome only. Exact for whole counts: all sums are of whole numbers, as long
    as there are fewer than 2**52 pairs of a recalled and a forgotten review.
    """
    pairs = counted.n_recalled * counted.n_forgotten
    if not pairs > 0:
        return math.nan
    # Twice the forgotten reviews below each prediction, those at it counting half.
    below = np.cumsum(counted.forgotten)
    below *= 2
    below -= counted.forgotten
    return min(1.0, float(counted.recalled @ below) / (2 * pairs))


@dataclass(frozen=True, slots=True)
class RocCurve:
    """A receiver operating characteristic, thinned for drawing."""

    # [m]: From (0, 0) to (1, 1); empty where one of the outcomes never happened
    fpr: FloatArray
    tpr: FloatArray
    # Exact operating points of the rule "recalled if p >= threshold"
    at: tuple[tuple[float, float, float], ...]
    auc: float  # Area under the complete curve; NaN where it is not defined


def roc_of(
    counted: Tally,
    *,
    thresholds: Sequence[float] = DEFAULT_THRESHOLDS,
    points: int = 2001,
) -> RocCurve:
    """Compute the ROC curve of a tally, with the operating points of some thresholds.

    At most `points` points are kept, evenly along the false positive rate.
    """
    hits = np.cumsum(np.append(0.0, counted.recalled[::-1]))
    alarms = np.cumsum(np.append(0.0, counted.forgotten[::-1]))
    fpr, tpr = (total / (total[-1] or math.nan) for total in (alarms, hits))
    above = [len(counted) - counted.first_at_least(threshold) for threshold in thresholds]
    at = tuple(
        (float(threshold), float(fpr[number]), float(tpr[number]))
        for threshold, number in zip(thresholds, above, strict=True)
    )
    if not counted.has_both_outcomes:
        return RocCurve(np.empty(0), np.empty(0), at, math.nan)
    if len(fpr) > points:
        even = np.linspace(0, 1, points - 1)
        kept = np.unique(np.r_[0, np.searchsorted(fpr, even, side="right") - 1])
        fpr, tpr = fpr[kept], tpr[kept]
    return RocCurve(fpr, tpr, at, auc_of(counted))


class Auc(SketchMetric):
    """Chance that a recalled review was given a higher prediction than a forgotten one.

    The area under the ROC curve. Ties count half. Exact, and the same in every precision that
    keeps the order. 0.5 is no discrimination, higher is better. NaN if only one outcome happened.

    References
    ----------
    Hanley and McNeil (1982), doi:10.1148/radiology.143.1.7063747.

    Examples
    --------
    >>> Auc().of_outcomes([0.9, 0.8, 0.8, 0.4], [True, True, False, False])
    0.875
    """

    name, better, section = "auc", "higher", "discrimination"
    bounds = (0.0, 1.0)

    def of(self, sketch: Sketch) -> float:
        return auc_of(sketch.tally)
