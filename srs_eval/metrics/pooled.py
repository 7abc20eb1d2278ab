"""Scores of all users' predictions put together, without having them in memory together."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from srs_eval.metrics.cluster_sums import ClusterSums, is_mergeable, merged_scores
from srs_eval.metrics.intervals import around, half_widths
from srs_eval.metrics.panel import Panel, finite
from srs_eval.metrics.prediction_cells import FineCells
from srs_eval.metrics.resample import LEVEL, RESAMPLES
from srs_eval.metrics.sketch import Sketch
from srs_eval.metrics.tally import tally
from srs_eval.metrics.threshold import threshold_rows
from srs_eval.metrics.validate import check_predictions
from srs_eval.nouns import Predictions
from srs_eval.predictions import concatenate


@dataclass(frozen=True, slots=True)
class PooledScores:
    """Scores of all users' predictions put together.

    Attributes
    ----------
    scores : dict of str to float
        The panel; NaN where a metric is not defined, and for metrics that follow neither from
        sums nor from counted predictions unless all rows were kept.
    intervals : dict of str to (lo, hi)
        From resampling users; NaN with fewer than five of them.
    thresholds : tuple of dict
        What happened at each threshold: see `threshold_rows`.
    """

    scores: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    thresholds: tuple[dict[str, float], ...]


@dataclass(slots=True)
class PooledUsers:
    """Adds up the users of a run, one after the other.

    What depends on the order of predictions is computed from 2**20 cells: the area under the
    curve is within 1e-6 of the exact one where predictions are spread out.

    Parameters
    ----------
    panel : Panel
        What is computed. Metrics of a plug-in that can only be computed from rows make all
        users' rows be kept.
    """

    panel: Panel
    _clusters: list[ClusterSums] = field(default_factory=list)
    _cells: FineCells = field(default_factory=FineCells)
    _rows: list[Predictions] = field(default_factory=list)

    def add(self, predictions: Predictions) -> None:
        """Add the predictions of one more user."""
        check_predictions(predictions)
        everyone = np.zeros(len(predictions), np.int64)
        self._clusters.append(ClusterSums.of(self.panel, predictions, everyone, 1))
        self._cells.add(tally(predictions.p, predictions.recalled))
        if not all(is_mergeable(metric) for metric in self.panel):
            self._rows.append(predictions)

    def scored(
        self, *, resamples: int = RESAMPLES, seed: int = 0, level: float = LEVEL
    ) -> PooledScores:
        """Score what was added up, with intervals from resampling users."""
        scores = dict.fromkeys(self.panel.names, math.nan)
        if not self._clusters:
            return PooledScores(scores, dict.fromkeys(scores, (math.nan, math.nan)), ())
        clusters = ClusterSums.stacked(self._clusters)
        sums, curves = clusters.together()
        sketch = Sketch(sums, self._cells.tally)
        scores |= merged_scores(self.panel, sketch, curves)
        scores |= self._from_rows()
        scores = {name: finite(score) for name, score in scores.items()}
        widths = half_widths(clusters, resamples=resamples, seed=seed, level=level)
        return PooledScores(
            scores, around(self.panel, scores, widths), threshold_rows(sketch, self.panel)
        )

    def _from_rows(self) -> dict[str, float]:
        """Compute what follows from nothing but all rows."""
        rows = concatenate(self._rows)
        if rows is None:
            return {}
        return {metric.name: metric(rows) for metric in self.panel if not is_mergeable(metric)}


def pool(panel: Panel, users: Iterable[Predictions], *, seed: int = 0) -> PooledScores:
    """Score the predictions of some users put together."""
    together = PooledUsers(panel)
    for predictions in users:
        together.add(predictions)
    return together.scored(seed=seed)
