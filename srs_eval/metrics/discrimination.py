"""How well predictions separate what will be recalled from what will not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from srs_eval.metrics.threshold import DEFAULT_THRESHOLDS, confusion_counts
from srs_eval.metrics.validate import paired
from srs_eval.nouns import Better, BoolArray, FloatArray, Predictions


def auc(p: ArrayLike, recalled: ArrayLike) -> float:
    """Chance that a recalled review was given a higher prediction than a forgotten one.

    Ties count half. Exact, and the same in every precision that keeps the order.

    Parameters
    ----------
    p : float [n], in [0, 1]
        Predicted probability of recall.
    recalled : bool [n]
        Outcome.

    Returns
    -------
    float
        In [0, 1]; 0.5 is no discrimination, higher is better. NaN if only one outcome
        happened.

    References
    ----------
    Hanley and McNeil (1982), doi:10.1148/radiology.143.1.7063747.

    Examples
    --------
    >>> auc([0.9, 0.8, 0.8, 0.4], [True, True, False, False])
    0.875
    """
    return _area(*paired(p, recalled))


@dataclass(frozen=True, slots=True)
class RocCurve:
    """A receiver operating characteristic, thinned for drawing.

    Attributes
    ----------
    fpr, tpr : float64 [m]
        From (0, 0) to (1, 1); empty where one of the outcomes never happened.
    at : tuple of (threshold, fpr, tpr)
        Exact operating points of the rule "recalled if p >= threshold".
    auc : float
        Area under the complete curve; NaN where it is not defined.
    """

    fpr: FloatArray
    tpr: FloatArray
    at: tuple[tuple[float, float, float], ...]
    auc: float


def roc_points(
    p: ArrayLike,
    recalled: ArrayLike,
    *,
    thresholds: Sequence[float] = DEFAULT_THRESHOLDS,
    points: int = 2001,
) -> RocCurve:
    """Trace the ROC curve with the operating points of some thresholds.

    Parameters
    ----------
    p : float [n], in [0, 1]
        Predicted probability of recall.
    recalled : bool [n]
        Outcome.
    thresholds : sequence of float
        Predictions at which a scheduler acts.
    points : int
        At most this many points are kept, evenly along the false positive rate.

    Examples
    --------
    >>> curve = roc_points([0.9, 0.8, 0.4], [True, False, True], thresholds=[0.85])
    >>> curve.fpr.tolist(), curve.tpr.tolist(), curve.at
    ([0.0, 0.0, 1.0, 1.0], [0.0, 0.5, 0.5, 1.0], ((0.85, 0.0, 0.5),))
    """
    probability, outcome = paired(p, recalled)
    counts = [confusion_counts(probability, outcome, threshold) for threshold in thresholds]
    at = tuple(
        (float(threshold), count.rate("fpr"), count.rate("tpr"))
        for threshold, count in zip(thresholds, counts, strict=True)
    )
    recalls = int(np.count_nonzero(outcome))
    lapses = len(outcome) - recalls
    if not recalls or not lapses:
        return RocCurve(np.empty(0), np.empty(0), at, math.nan)
    order = np.argsort(probability)[::-1]
    last = np.flatnonzero(np.r_[np.diff(probability[order]) != 0, True])
    hits = np.r_[0, np.cumsum(outcome[order], dtype=np.int64)[last]]
    alarms = np.r_[0, last + 1] - hits
    kept = _thinned(alarms / lapses, points)
    return RocCurve(alarms[kept] / lapses, hits[kept] / recalls, at, _area(probability, outcome))


def _thinned(fpr: FloatArray, points: int) -> FloatArray | slice:
    """Choose points evenly along the false positive rate, both ends included."""
    if len(fpr) <= points:
        return slice(None)
    even = np.linspace(0, 1, points - 1)
    return np.unique(np.r_[0, np.searchsorted(fpr, even, side="right") - 1])


def _area(p: FloatArray, recalled: BoolArray) -> float:
    """Area under the curve by counting, for each lapse, the recalls above it."""
    above = np.sort(p[recalled])
    below = np.sort(p[~recalled])
    pairs = len(above) * len(below)
    if not pairs:
        return math.nan
    # Twice the recalls that a lapse was not put below, so that ties stay whole numbers.
    beaten = np.searchsorted(above, below, "left") + np.searchsorted(above, below, "right")
    return 1 - int(beaten.sum()) / (2 * pairs)


@dataclass(frozen=True, slots=True)
class Auc:
    """Area under the ROC curve: see `auc`."""

    name: ClassVar[str] = "auc"
    better: ClassVar[Better] = "higher"
    section: ClassVar[str] = "discrimination"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __call__(self, predictions: Predictions) -> float:
        """Score the predictions."""
        return auc(predictions.p, predictions.recalled)
