"""Scores of the pooled predictions of all users, one user in memory at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from srs_eval.metrics.cluster_sums import ClusterSums, is_mergeable, merged_scores
from srs_eval.metrics.intervals import half_widths, intervals_around
from srs_eval.metrics.panel import Panel, finite
from srs_eval.metrics.prediction_cells import FineCells, PredictionCells
from srs_eval.metrics.tally import tally
from srs_eval.metrics.threshold import threshold_rows
from srs_eval.metrics.validate import check_predictions
from srs_eval.nouns import Predictions
from srs_eval.nouns.predictions import concatenate
from srs_eval.stats.resample import RESAMPLES
from srs_eval.stats.significance import LEVEL


@dataclass(frozen=True, slots=True)
class PooledScores:
    """Scores of the pooled predictions of all users.

    Attributes
    ----------
    scores : mapping of str to float
        The panel; NaN where a metric is not defined.
    intervals : mapping of str to (lo, hi)
        From resampling users; NaN with fewer than five of them.
    thresholds : tuple of dict
        Counts, rates and intervals for each threshold: see `threshold_rows`.
    """

    scores: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    thresholds: tuple[Mapping[str, float], ...]


def pool(
    panel: Panel,
    users: Callable[[], Iterable[Predictions]],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = LEVEL,
) -> PooledScores:
    """Score the pooled predictions of some users, with intervals from resampling users.

    Goes over the users twice. What depends on the order of predictions is computed from
    2**20 cells that get narrower towards 0 and 1. Predictions closer to each other than two
    millionths and than 1.3e-4 of their distance from 0 or 1 count as ties.

    Parameters
    ----------
    panel : Panel
        The metrics. If a plug-in's metric can only be computed from rows, the rows of all users
        are kept in memory.
    users : callable
        Returns an iterable of the predictions of each user, the same at each call.
    resamples, seed, level
        Of the bootstrap.
    """
    fine = FineCells()
    for predictions in users():
        check_predictions(predictions)
        fine.add(tally(predictions.p, predictions.recalled))
    counted = fine.tally()
    if not len(counted):
        unknown = dict.fromkeys(panel.names, math.nan)
        return PooledScores(unknown, dict.fromkeys(panel.names, (math.nan, math.nan)), ())
    cells = PredictionCells.for_predictions(counted)
    of_rows = [metric for metric in panel if not is_mergeable(metric)]
    parts, rows = [], []
    for predictions in users():
        everyone = np.zeros(len(predictions), np.int64)
        parts.append(ClusterSums.of(panel, predictions, everyone, 1, cells))
        rows += [predictions] if of_rows else []
    clusters = ClusterSums.stacked(parts)
    sketch, curves = clusters.together()
    sketch = sketch.with_tally(counted)
    scores = dict.fromkeys(panel.names, math.nan) | merged_scores(panel, sketch, curves)
    whole = concatenate(rows)
    if whole is not None:
        scores |= {metric.name: metric(whole) for metric in of_rows}
    scores = {name: finite(score) for name, score in scores.items()}
    widths = half_widths(clusters, resamples=resamples, seed=seed, level=level)
    thresholds = threshold_rows(sketch, panel, level=level)
    return PooledScores(scores, intervals_around(panel, scores, widths), thresholds)
