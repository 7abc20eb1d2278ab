"""Sums of each cluster of reviews, and the sketches of resampled clusters.

A cluster is what reviews are alike in: their user, their card, their day. Resampling clusters
weights each of them with how often it is drawn, so all resamples of all metrics are one
product of matrices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from srs_eval.metrics.curve_rows import CurveMetric, reviews_of_curves
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.prediction_cells import PredictionCells, tally_of_cells
from srs_eval.metrics.sketch import ReviewMean, ReviewMeanSums, Sketch, SketchMetric, sums_of
from srs_eval.metrics.sums import Sums, Totals, add_up, stacked
from srs_eval.nouns import FloatArray, IntArray, Metric, Predictions
from srs_eval.predictions import select

CELLS = PredictionCells()


@dataclass(frozen=True, slots=True)
class ClusterSums:
    """What the mergeable metrics of a panel are made of, for each cluster.

    Attributes
    ----------
    panel : Panel
        The metrics.
    totals : tuple of Totals
        As `needed` lists them: values [clusters, used, columns].
    curves : float64 [clusters, curve metrics, 2]
        Sum and number of the defined scores of forgetting curves.
    """

    panel: Panel
    totals: tuple[Totals, ...]
    curves: FloatArray

    def __len__(self) -> int:
        """Count the clusters."""
        return len(self.curves)

    @classmethod
    def of(
        cls, panel: Panel, predictions: Predictions, cluster: IntArray, clusters: int
    ) -> ClusterSums:
        """Add up each cluster.

        Parameters
        ----------
        predictions : Predictions
            Checked before.
        cluster : int64 [n]
            Cluster of each review, from 0 to `clusters` - 1.
        """
        curves = _curve_sums(panel, predictions, cluster, clusters)
        if (np.diff(cluster) < 0).any():
            order = np.argsort(cluster, kind="stable")
            predictions, cluster = select(predictions, order), cluster[order]
        totals = add_up(needed(panel), predictions, cluster, clusters)
        return cls(panel, tuple(totals), curves)

    @classmethod
    def stacked(cls, parts: Sequence[ClusterSums]) -> ClusterSums:
        """Put the clusters of several, of the same panel, under each other."""
        totals = [stacked(each) for each in zip(*(part.totals for part in parts), strict=True)]
        curves = np.concatenate([part.curves for part in parts])
        return cls(parts[0].panel, tuple(totals), curves)

    def resampled(self, draws: Iterable[FloatArray]) -> Iterator[dict[str, float]]:
        """Score resamples in which each cluster is there some number of times.

        Parameters
        ----------
        draws : iterable of float64 [resamples, clusters]

        Yields
        ------
        dict of str to float
            The mergeable metrics of each resample that have intervals; NaN where one is not
            defined there.
        """
        parts = [*(total.values for total in self.totals), self.curves]
        # Single precision is plenty for a spread, and half the work.
        table = np.concatenate([part.reshape(len(self), -1) for part in parts], axis=1, dtype="f4")
        ends = np.cumsum([part[0].size for part in parts])[:-1]
        metrics = [metric for metric in self.panel if getattr(metric, "has_interval", True)]
        names = needed(self.panel)
        for counts in draws:
            for row in (counts.astype(np.float32) @ table).astype(np.float64):
                pieces = zip(parts, np.split(row, ends), strict=True)
                *sums, curves = (piece.reshape(part.shape[1:]) for part, piece in pieces)
                cells = sums[names.index(CELLS)]
                found = dict(zip(names, sums, strict=True))
                yield merged_scores(metrics, Sketch(found, partial(tally_of_cells, cells)), curves)

    def together(self) -> tuple[dict[Sums, FloatArray], FloatArray]:
        """Add up all clusters: what a sketch of them has, and the sums of curves."""
        sums = [total.values.sum(axis=0) for total in self.totals]
        return dict(zip(needed(self.panel), sums, strict=True)), self.curves.sum(axis=0)


def needed(panel: Panel) -> list[Sums]:
    """List the sums of all metrics that can be merged, and cells for the tally."""
    means = [
        ReviewMeanSums(metric)
        for metric in panel
        if isinstance(metric, ReviewMean) and not isinstance(metric, SketchMetric | CurveMetric)
    ]
    return list(dict.fromkeys([*sums_of(panel), *means, CELLS]))


def is_mergeable(metric: Metric) -> bool:
    """Whether a metric of all users follows from sums of each user."""
    return isinstance(metric, SketchMetric | CurveMetric | ReviewMean)


def merged_scores(
    metrics: Iterable[Metric], sketch: Sketch, curves: FloatArray
) -> dict[str, float]:
    """Compute the mergeable ones of some metrics.

    Parameters
    ----------
    metrics : iterable of Metric
        Of a panel, with all its metrics of curves.
    sketch : Sketch
        With all that `needed` lists.
    curves : float64 [curve metrics, 2]
        Sum and number of the scores of forgetting curves.
    """
    scores = {}
    of_curves = iter(curves)
    for metric in metrics:
        if isinstance(metric, CurveMetric):
            total, held = next(of_curves).tolist()
            scores[metric.name] = total / held if held else np.nan
        elif isinstance(metric, SketchMetric):
            scores[metric.name] = metric.of(sketch)
        elif isinstance(metric, ReviewMean):
            total, held = sketch[ReviewMeanSums(metric)][0].tolist()
            scores[metric.name] = total / held if held else np.nan
    return scores


def _curve_sums(
    panel: Panel, predictions: Predictions, cluster: IntArray, clusters: int
) -> FloatArray:
    """Sum and number of the defined scores of each cluster's curves, for each metric of them."""
    metrics = [metric for metric in panel if isinstance(metric, CurveMetric)]
    sums = np.zeros((clusters, len(metrics), 2))
    curves = predictions.curves
    if curves is None or not metrics:
        return sums
    at = reviews_of_curves(predictions)
    reviews = select(predictions, at)
    for number, metric in enumerate(metrics):
        values = metric.per_curve(curves, reviews)
        defined = ~np.isnan(values)
        np.add.at(sums[:, number, 0], cluster[at][defined], values[defined])
        np.add.at(sums[:, number, 1], cluster[at], defined)
    return sums
