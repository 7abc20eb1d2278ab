"""Observed recall against predicted recall, with intervals that allow for cards and days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from srs_eval.collection.words import between
from srs_eval.nouns import BoolArray, Predictions
from srs_eval.stats.estimate import clustered_mean
from srs_eval.stats.significance import ALPHA, wilson_interval
from srs_eval.text.console import percent


@dataclass(frozen=True, slots=True)
class Share:
    """Recall in a group of reviews."""

    name: str  # The group
    reviews: int  # How many there are, at least one
    # Mean prediction, and share of recalls
    predicted: float
    observed: float
    # Interval of the true share
    lo: float
    hi: float

    @property
    def too_high(self) -> bool:
        """Whether predictions are above the interval."""
        return self.predicted > self.hi

    @property
    def too_low(self) -> bool:
        """Whether predictions are below the interval."""
        return self.predicted < self.lo

    @property
    def is_off(self) -> bool:
        """Whether predictions are outside the interval."""
        return self.too_high or self.too_low

    @property
    def recalled(self) -> str:
        """The observed share in words, with its interval."""
        return f"{percent(self.observed)} ({between(self.lo, self.hi)})"


def shares(predictions: Predictions, groups: Sequence[tuple[str, BoolArray]]) -> list[Share]:
    """Compute the recall of each group, a name and a mask, that has reviews.

    The intervals of all groups together hold with 99 %: each has 1 - 0.01 / groups (Bonferroni).
    Each is Wilson's, for as many independent reviews as have the variance of the sum of those
    within cards and days (Korn and Graubard, 1998, Survey Methodology 24, 193-201). Where all
    reviews turned out alike, cards or days are counted, whichever are fewer.
    """
    held = [(name, rows) for name, rows in groups if rows.any()]
    level = 1 - ALPHA / max(1, len(held))
    return [_share(predictions, name, rows, level) for name, rows in held]


def _share(predictions: Predictions, name: str, rows: BoolArray, level: float) -> Share:
    recalled = predictions.recalled[rows].astype(np.float64)
    clusters = [predictions.card[rows]]
    if predictions.day is not None:
        clusters.append(predictions.day[rows])
    observed = float(recalled.mean())
    effective = float(min(len(np.unique(cluster)) for cluster in clusters))
    variance = clustered_mean(recalled, *clusters).se ** 2
    if variance > 0:
        effective = min(observed * (1 - observed) / variance, float(len(recalled)))
    lo, hi = wilson_interval(observed * effective, effective, level=level)
    predicted = float(np.mean(predictions.p[rows], dtype=np.float64))
    return Share(name, len(recalled), predicted, observed, lo, hi)
