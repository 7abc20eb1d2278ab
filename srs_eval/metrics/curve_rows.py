"""Forgetting curves and the reviews they belong to, for metrics that are a mean over curves."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from srs_eval.errors import ScoreError
from srs_eval.metrics.sketch import DeclaredMetric
from srs_eval.nouns import Curves, FloatArray, IntArray, Predictions


@dataclass(frozen=True, slots=True)
class CurveMetric(DeclaredMetric):
    """Base class of metrics that are the mean of one number per forgetting curve."""

    section: ClassVar[str] = "time"

    @abstractmethod
    def per_curve(self, curves: Curves) -> FloatArray:
        """Score each curve on its own [n_curves], NaN where it is not defined."""

    def __call__(self, predictions: Predictions) -> float:
        """Average over the curves that have a score; NaN if there are none."""
        curves = predictions.curves
        if curves is None:
            return math.nan
        values = self.per_curve(curves)
        defined = values[~np.isnan(values)]
        return float(defined.mean()) if len(defined) else math.nan


def reviews_of_curves(predictions: Predictions) -> IntArray:
    """Return the position of each forgetting curve's review, known by its user, fold and row."""
    curves = predictions.curves
    if curves is None:
        return np.empty(0, np.int64)
    # Few of many reviews have a curve: the others are set aside before anything is sorted.
    near = np.flatnonzero(np.isin(predictions.row, curves.row))
    of_review = np.zeros(len(near), np.int64)
    of_curve = np.zeros(len(curves.row), np.int64)
    for name in ("user", "fold", "row"):
        known, code = np.unique(getattr(curves, name), return_inverse=True)
        column = getattr(predictions, name)[near]
        place = np.searchsorted(known, column)
        same = known[np.minimum(place, len(known) - 1)] == column
        near, of_review = near[same], of_review[same] * len(known) + place[same]
        of_curve = of_curve * len(known) + code
    order = np.argsort(of_review, kind="stable")
    of_review, near = of_review[order], near[order]
    place = np.searchsorted(of_review, of_curve)
    strangers = np.ones(len(of_curve), np.bool_)
    inside = place < len(near)
    strangers[inside] = of_review[place[inside]] != of_curve[inside]
    if strangers.any():
        raise ScoreError(
            f"forgetting curve {np.argmax(strangers)} (and {strangers.sum() - 1} more) belongs to "
            "a review that was not scored; curves must be of rows that are in the predictions"
        )
    found: IntArray = near[place]
    return found
