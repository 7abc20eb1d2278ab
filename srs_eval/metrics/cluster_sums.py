"""Sums of each cluster of reviews, and the sketches of resampled clusters.

A cluster is a user, a card or a day: its reviews are correlated. Resampling clusters weights each
of them by how often it is drawn, so all resamples of all metrics are one matrix product.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from srs_eval.metrics.curve_rows import CurveMetric, reviews_of_curves
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.prediction_cells import PredictionCells, tally_of_cells
from srs_eval.metrics.sketch import ReviewMean, ReviewMeanSums, Sketch, SketchMetric, sums_of
from srs_eval.metrics.sums import Sums, Totals, add_up
from srs_eval.nouns import FloatArray, IntArray, Metric, Predictions
from srs_eval.nouns.predictions import select

# Clusters added up at once, and the share of sums that are not 0 from which on a table of all
# of them is quicker to multiply than a list of those.
BLOCK, DENSE = 500, 0.15


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in the table the sums of one kind stand."""

    sums: Sums
    begin: int  # Column of the first cell
    columns: int  # Numbers in each cell

    @property
    def end(self) -> int:
        """Column after the last cell."""
        return self.begin + self.sums.cells * self.columns

    def used(self, present: IntArray) -> IntArray:
        """Columns of the cells that hold anything; of the only one, always."""
        inside = present[(present >= self.begin) & (present < self.end)] - self.begin
        cells = np.unique(inside // self.columns) if self.sums.cells > 1 else np.zeros(1, np.int64)
        first: IntArray = self.begin + cells * self.columns
        return np.add.outer(first, np.arange(self.columns)).ravel()


@dataclass(frozen=True, slots=True)
class _Block:
    """Sums of some clusters, in the columns that are not 0 for all of them."""

    sums: FloatArray | csr_array  # [clusters, used], or a sparse array where most of it is 0
    columns: IntArray  # [used], increasing

    @classmethod
    def of(cls, places: Sequence[_Place], totals: Sequence[Totals]) -> _Block:
        """Build a block from the sums of some clusters."""
        groups = len(totals[0].values)
        tables, columns = [], []
        for place, total in zip(places, totals, strict=True):
            first = place.begin + total.cell * place.columns
            columns.append(np.add.outer(first, np.arange(place.columns)).ravel())
            tables.append(total.values.reshape(groups, -1))
        sums = np.concatenate(tables, axis=1)
        is_full = np.count_nonzero(sums) > DENSE * sums.size
        return cls(sums if is_full else csr_array(sums), np.concatenate(columns))

    @property
    def filled(self) -> int:
        """Numbers that are not 0, or may not be."""
        return self.sums.nnz if isinstance(self.sums, csr_array) else self.sums.size


@dataclass(frozen=True, slots=True)
class ClusterSums:
    """Sums for each cluster, from which the mergeable metrics of a panel are computed."""

    panel: Panel  # The metrics
    cells: PredictionCells  # What the predictions are counted in
    places: tuple[_Place, ...]  # What the columns of the table are
    blocks: tuple[_Block, ...]  # Sums in each cell, of some clusters each
    # [clusters, curve metrics, 2]: Sum and number of the defined scores of forgetting curves
    curves: FloatArray

    def __len__(self) -> int:
        return len(self.curves)

    @classmethod
    def of(
        cls,
        panel: Panel,
        predictions: Predictions,
        cluster: IntArray,
        clusters: int,
        cells: PredictionCells,
        *,
        block: int = BLOCK,
    ) -> ClusterSums:
        """Add up each cluster of checked predictions, `block` of them at a time.

        `cluster` is the number of each review's cluster, below `clusters`.
        """
        curves = _curve_sums(panel, predictions, cluster, clusters)
        if (np.diff(cluster) < 0).any():
            order = np.argsort(cluster, kind="stable")
            predictions, cluster = select(predictions, order), cluster[order]
        kinds = [*needed(panel), cells]
        blocks = []
        places: tuple[_Place, ...] = ()
        for first in range(0, clusters, block):
            size = min(block, clusters - first)
            rows = slice(*np.searchsorted(cluster, [first, first + size]).tolist())
            totals = add_up(kinds, select(predictions, rows), cluster[rows] - first, size)
            places = places or _places(kinds, totals)
            blocks.append(_Block.of(places, totals))
        return cls(panel, cells, places, tuple(blocks), curves)

    @classmethod
    def stacked(cls, parts: Sequence[ClusterSums]) -> ClusterSums:
        """Concatenate the clusters of several sums of the same panel and cells."""
        first = parts[0]
        blocks = tuple(block for part in parts for block in part.blocks)
        curves = np.concatenate([part.curves for part in parts])
        return cls(first.panel, first.cells, first.places, blocks, curves)

    def resampled(self, draws: Iterable[FloatArray]) -> Iterator[dict[str, float]]:
        """Yield the mergeable metrics with intervals, of resamples with each cluster so many times.

        `draws` are blocks of [resamples, clusters]. A metric is NaN where a resample does not
        define it.
        """
        metrics = [metric for metric in self.panel if getattr(metric, "has_interval", True)]
        columns = self._used()
        table = self._compact(np.concatenate(columns))
        ends = np.cumsum([len(each) for each in columns])[:-1]
        curves = self.curves.reshape(len(self), -1)
        for counts in draws:
            weighted = (table.T @ counts.T).T
            of_curves = (counts @ curves).reshape(len(counts), *self.curves.shape[1:])
            for row, curve_sums in zip(weighted, of_curves, strict=True):
                sketch = self._sketch(np.split(row, ends))
                yield merged_scores(metrics, sketch, curve_sums)

    def together(self) -> tuple[Sketch, FloatArray]:
        """Add up all clusters: their sketch, and the sums of curves."""
        total = np.zeros(self.places[-1].end)
        for block in self.blocks:
            total[block.columns] += np.asarray(block.sums.sum(axis=0)).ravel()
        return self._sketch([total[each] for each in self._used()]), self.curves.sum(axis=0)

    def _used(self) -> list[IntArray]:
        """Columns of each kind of sums that are not always 0."""
        held = np.zeros(self.places[-1].end, np.bool_)
        for block in self.blocks:
            held[block.columns] = True
        present = np.flatnonzero(held)
        return [place.used(present) for place in self.places]

    def _compact(self, columns: IntArray) -> Any:
        """Return a table of some columns of all clusters, sparse if most entries are 0."""
        number = np.zeros(self.places[-1].end, np.int64)
        number[columns] = np.arange(len(columns))
        size = len(self) * len(columns)
        if sum(block.filled for block in self.blocks) < DENSE * size:
            return vstack([self._spread(block, number, len(columns)) for block in self.blocks])
        table = np.zeros((len(self), len(columns)))
        begin = 0
        for block in self.blocks:
            sums = block.sums.toarray() if isinstance(block.sums, csr_array) else block.sums
            table[begin : begin + len(sums), number[block.columns]] = sums
            begin += len(sums)
        return table

    @staticmethod
    def _spread(block: _Block, number: IntArray, width: int) -> csr_array:
        """Return a block as a sparse array with renumbered columns."""
        sparse = csr_array(block.sums)
        places = number[block.columns][sparse.indices]
        return csr_array((sparse.data, places, sparse.indptr), shape=(sparse.shape[0], width))

    def _sketch(self, sums: Sequence[FloatArray]) -> Sketch:
        """Make a sketch of sums in the order of the places."""
        found = {
            place.sums: each.reshape(-1, place.columns)
            for place, each in zip(self.places, sums, strict=True)
        }
        return Sketch(found, partial(tally_of_cells, found[self.cells]))


def needed(panel: Panel) -> list[Sums]:
    """List the sums of all metrics that can be merged, apart from cells for the tally."""
    means = [
        ReviewMeanSums(metric)
        for metric in panel
        if isinstance(metric, ReviewMean) and not isinstance(metric, SketchMetric | CurveMetric)
    ]
    return list(dict.fromkeys([*sums_of(panel), *means]))


def is_mergeable(metric: Metric) -> bool:
    """Whether a metric of all users follows from sums of each user."""
    return isinstance(metric, SketchMetric | CurveMetric | ReviewMean)


def merged_scores(
    metrics: Iterable[Metric], sketch: Sketch, curves: FloatArray
) -> dict[str, float]:
    """Compute the mergeable ones of the metrics of a panel, from a sketch with all they need.

    `curves` has the sum and the number of the scores of forgetting curves, [curve metrics, 2].
    """
    scores = {}
    of_curves = iter(curves)
    for metric in metrics:
        if isinstance(metric, CurveMetric):
            total, held = next(of_curves).tolist()
            scores[metric.name] = total / held if held else math.nan
        elif isinstance(metric, SketchMetric):
            scores[metric.name] = metric.of(sketch) if len(sketch.tally) else math.nan
        elif isinstance(metric, ReviewMean):
            total, held = sketch[ReviewMeanSums(metric)][0].tolist()
            scores[metric.name] = total / held if held else math.nan
    return scores


def _places(kinds: Sequence[Sums], totals: Sequence[Totals]) -> tuple[_Place, ...]:
    """Assign columns to every cell of every kind of sums."""
    places: list[_Place] = []
    for sums, total in zip(kinds, totals, strict=True):
        begin = places[-1].end if places else 0
        places.append(_Place(sums, begin, total.values.shape[-1]))
    return tuple(places)


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
