"""Scores of the pooled predictions of all users, from sums of each user that add up."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_eval.errors import ScoreError
from srs_eval.metrics.cluster_sums import ClusterSums, is_mergeable, merged_scorer
from srs_eval.metrics.intervals import half_widths, intervals_around
from srs_eval.metrics.panel import Panel, finite
from srs_eval.metrics.prediction_cells import FineCells, PredictionCells
from srs_eval.metrics.resample import GROUPS, RESAMPLES, group_of
from srs_eval.metrics.significance import LEVEL
from srs_eval.metrics.threshold import threshold_rows
from srs_eval.metrics.validate import check_predictions
from srs_eval.nouns import IntArray, Predictions
from srs_eval.nouns.predictions import concatenate

_CELLS = PredictionCells.fixed()


class PooledSums:
    """Sums of users, from which the pooled scores of a panel are computed.

    Workers add predictions; the parent adds up the sums of workers. Nothing depends on how users
    are divided, if they come in the same order. Above 10,000 users, the sums of 10,000 groups of
    users are kept instead of those of each.
    """

    def __init__(self, panel: Panel, users: Iterable[Predictions] = ()) -> None:
        self.panel = panel
        self.users = 0
        self.fine = FineCells()
        self._waiting: list[tuple[ClusterSums, IntArray]] = []
        self._grouped: ClusterSums | None = None
        for predictions in users:
            self.add(predictions)

    def add(self, predictions: Predictions) -> None:
        """Add the predictions of one user."""
        check_predictions(predictions)
        self.fine.add(predictions)
        everyone = np.zeros(len(predictions), np.int64)
        group = np.array([group_of(name) for name in predictions.users[:1] or ("",)])
        self._append(ClusterSums.of(self.panel, predictions, everyone, 1, _CELLS), group)

    def extend(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Add the users of other sums of the same panel, as `arrays` returned them, at the end."""
        self.fine.extend(arrays)
        if len(arrays["sum_group"]):
            self._append(ClusterSums.of_arrays(self.panel, _CELLS, arrays), arrays["sum_group"])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the sums of at most 10,000 users as arrays of numbers, each with one dimension.

        Sums of more users are in groups and cannot be taken apart.
        """
        if self.are_grouped:
            raise ScoreError(f"sums of {self.users} users: expected {GROUPS} or fewer in a chunk")
        fine = self.fine.arrays()
        if not self._waiting:
            return {"sum_group": np.zeros(0, np.int64), **fine}
        clusters, group = self._joined()
        return {"sum_group": group, **clusters.arrays(), **fine}

    @property
    def are_grouped(self) -> bool:
        """Whether users are added up in groups."""
        return self.users > GROUPS

    def clusters(self) -> ClusterSums:
        """Return the sums of each user, or of each group that has users."""
        clusters, group = self._joined()
        if self._grouped is None:
            return clusters
        grouped = clusters.grouped(group, GROUPS).added_to(self._grouped)
        return grouped[np.diff(grouped.table.indptr) > 0]

    def _append(self, clusters: ClusterSums, group: IntArray) -> None:
        self.users += len(clusters)
        self._waiting.append((clusters, group))
        while sum(len(each) for _, each in self._waiting) > GROUPS:
            clusters, group = self._joined()
            self._waiting = [(clusters[GROUPS:], group[GROUPS:])]
            added = clusters[:GROUPS].grouped(group[:GROUPS], GROUPS)
            self._grouped = added if self._grouped is None else added.added_to(self._grouped)

    def _joined(self) -> tuple[ClusterSums, IntArray]:
        clusters, groups = zip(*self._waiting, strict=True)
        self._waiting = [(ClusterSums.stacked(clusters), np.concatenate(groups))]
        return self._waiting[0]


@dataclass(frozen=True, slots=True)
class PooledScores:
    """Scores of the pooled predictions of all users."""

    scores: Mapping[str, float]  # The panel; NaN where a metric is not defined
    # From resampling users; NaN with fewer than five of them
    intervals: Mapping[str, tuple[float, float]]
    # Counts, rates and intervals for each threshold: see `threshold_rows`
    thresholds: tuple[Mapping[str, float], ...]
    are_grouped: bool = False  # Whether groups of users were resampled


def pool(
    panel: Panel,
    users: Callable[[], Iterable[Predictions]],
    sums: PooledSums | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = LEVEL,
) -> PooledScores:
    """Score the pooled predictions of some users, with intervals from resampling users.

    What depends on the order of predictions is computed from 2**20 cells that get narrower towards
    0 and 1. Predictions closer to each other than two millionths and than 1.3e-4 of their distance
    from 0 or 1 count as ties.

    `users` returns the predictions of each user, the same at each call; it is not called where the
    `sums` are enough. If a plug-in's metric can only be computed from rows, the rows of all users
    are kept in memory. Above 10,000 users, groups of them are resampled.
    """
    sums = PooledSums(panel, users()) if sums is None else sums
    counted = sums.fine.tally()
    if not len(counted):
        unknown = dict.fromkeys(panel.names, math.nan)
        return PooledScores(unknown, dict.fromkeys(panel.names, (math.nan, math.nan)), ())
    clusters = sums.clusters()
    sketch, curves = clusters.together()
    sketch = sketch.with_tally(counted)
    scores = dict.fromkeys(panel.names, math.nan) | merged_scorer(panel)(sketch, curves)
    of_rows = [metric for metric in panel if not is_mergeable(metric)]
    whole = concatenate(list(users())) if of_rows else None
    if whole is not None:
        scores |= {metric.name: metric(whole) for metric in of_rows}
    scores = {name: finite(score) for name, score in scores.items()}
    widths = half_widths(clusters, resamples=resamples, seed=seed, level=level)
    thresholds = threshold_rows(sketch, panel, level=level)
    return PooledScores(
        scores, intervals_around(panel, scores, widths), thresholds, are_grouped=sums.are_grouped
    )
