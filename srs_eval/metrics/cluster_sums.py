"""Sums of each cluster of reviews, and the sketches of resampled clusters.

A cluster is a user, a card or a day: its reviews are correlated. Resampling clusters weights each
of them by how often it is drawn, so all resamples of all metrics are one matrix product.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from srs_eval.metrics.curve_rows import CurveMetric, reviews_of_curves
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.prediction_cells import PredictionCells
from srs_eval.metrics.sketch import ReviewMean, ReviewMeanSums, Sketch, SketchMetric, sums_of
from srs_eval.metrics.sums import Sums, Totals, add_up
from srs_eval.metrics.tally import from_sums
from srs_eval.nouns import BoolArray, FloatArray, IntArray, Metric, Predictions
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
class ClusterSums:
    """Sums for each cluster, from which the mergeable metrics of a panel are computed."""

    panel: Panel  # The metrics
    cells: PredictionCells  # What the predictions are counted in
    places: tuple[_Place, ...]  # What the columns of the table are
    table: csr_array  # Sums of each cluster [clusters, columns]
    # [clusters, curve metrics, 2]: Sum and number of the defined scores of forgetting curves
    curves: FloatArray

    def __len__(self) -> int:
        return len(self.curves)

    @property
    def reviews(self) -> FloatArray:
        """Number of reviews of each cluster: those of the cells, forgotten and recalled."""
        cells = self.places[-1]
        is_count = np.arange(cells.end - cells.begin) % cells.columns < 2
        numbers: FloatArray = self.table[:, cells.begin : cells.end] @ is_count.astype(np.float64)
        return numbers

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
        tables: list[csr_array] = []
        places: tuple[_Place, ...] = ()
        for first in range(0, clusters, block):
            size = min(block, clusters - first)
            rows = slice(*np.searchsorted(cluster, [first, first + size]).tolist())
            totals = add_up(kinds, select(predictions, rows), cluster[rows] - first, size)
            places = places or _places(kinds, [total.values.shape[-1] for total in totals])
            tables.append(_sparse(places, totals))
        return cls(panel, cells, places, vstack(tables, format="csr"), curves)

    @classmethod
    def stacked(cls, parts: Sequence[ClusterSums]) -> ClusterSums:
        """Concatenate the clusters of several sums of the same panel and cells."""
        table = vstack([part.table for part in parts], format="csr")
        return replace(
            parts[0], table=table, curves=np.concatenate([part.curves for part in parts])
        )

    @classmethod
    def of_arrays(
        cls, panel: Panel, cells: PredictionCells, arrays: Mapping[str, NDArray[Any]]
    ) -> ClusterSums:
        """Make the sums that `arrays` was called on."""
        places = _places([*needed(panel), cells], arrays["sum_width"].tolist())
        clusters = len(arrays["sum_begin"]) - 1
        data = (arrays["sum_value"], arrays["sum_column"], arrays["sum_begin"])
        table = csr_array(data, shape=(clusters, places[-1].end))
        curves = arrays["sum_curves"].reshape(clusters, -1, 2)
        return cls(panel, cells, places, table, curves)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the sums as arrays [any], for `of_arrays`."""
        return {
            "sum_width": np.array([place.columns for place in self.places], np.int32),
            "sum_begin": self.table.indptr,
            "sum_column": self.table.indices,
            "sum_value": self.table.data,
            "sum_curves": self.curves.ravel(),
        }

    def __getitem__(self, rows: slice | BoolArray) -> ClusterSums:
        """Return some of the clusters."""
        return replace(self, table=self.table[rows], curves=self.curves[rows])

    def added_to(self, other: ClusterSums) -> ClusterSums:
        """Add the sums of as many other clusters, one to one."""
        return replace(self, table=other.table + self.table, curves=other.curves + self.curves)

    def grouped(self, group: IntArray, groups: int) -> ClusterSums:
        """Add up the clusters of each group [clusters], in their order."""
        ones = np.ones(len(group))
        members = csr_array((ones, (group, np.arange(len(group)))), shape=(groups, len(group)))
        table = members @ self.table
        table.sort_indices()
        curves = (members @ self.curves.reshape(len(group), -1)).reshape(groups, -1, 2)
        return replace(self, table=table, curves=curves)

    def resampled(self, draws: Iterable[FloatArray]) -> Iterator[dict[str, float]]:
        """Yield the mergeable metrics with intervals, of resamples with each cluster so many times.

        `draws` are blocks of [resamples, clusters]. A metric is NaN where a resample does not
        define it.
        """
        metrics = [metric for metric in self.panel if getattr(metric, "has_interval", True)]
        columns = self._used()
        table = self._compact(np.concatenate(columns))
        ends = np.cumsum([len(each) for each in columns])[:-1]
        score = merged_scorer(metrics)
        curves = self.curves.reshape(len(self), -1)
        for block in draws:
            weighted = np.ascontiguousarray((table.T @ block.T).T)
            of_curves = (block @ curves).reshape(len(block), *self.curves.shape[1:])
            kinds = np.split(weighted, ends, axis=1)
            for own, *sums in zip(of_curves, *kinds, strict=True):
                yield score(self._sketch(sums), own)

    def together(self) -> tuple[Sketch, FloatArray]:
        """Add up all clusters: their sketch, and the sums of curves."""
        total = np.zeros(self.places[-1].end)
        np.add.at(total, self.table.indices, self.table.data)
        return self._sketch([total[each] for each in self._used()]), self.curves.sum(axis=0)

    def _used(self) -> list[IntArray]:
        """Columns of each kind of sums that are not always 0."""
        held = np.zeros(self.places[-1].end, np.bool_)
        held[self.table.indices] = True
        present = np.flatnonzero(held)
        return [place.used(present) for place in self.places]

    def _compact(self, columns: IntArray) -> Any:
        """Return a table of some columns of all clusters, sparse if most entries are 0."""
        number = np.zeros(self.places[-1].end, self.table.indices.dtype)
        number[columns] = np.arange(len(columns))
        parts = self.table.data, number[self.table.indices], self.table.indptr
        table = csr_array(parts, shape=(len(self), len(columns)))
        return table if table.nnz < DENSE * math.prod(table.shape) else table.toarray()

    def _sketch(self, sums: Sequence[FloatArray]) -> Sketch:
        """Make a sketch of sums in the order of the places."""
        found = {
            place.sums: each.reshape(-1, place.columns)
            for place, each in zip(self.places, sums, strict=True)
        }
        return Sketch(found, lambda: from_sums(*found[self.cells].T))


def needed(panel: Panel) -> list[Sums]:
    """List the sums of all metrics that can be merged, apart from cells for the tally."""
    means = [
        ReviewMeanSums(metric)
        for metric in panel
        if not isinstance(metric, SketchMetric | CurveMetric) and isinstance(metric, ReviewMean)
    ]
    return list(dict.fromkeys([*sums_of(panel), *means]))


def is_mergeable(metric: Metric) -> bool:
    """Whether a metric of all users follows from sums of each user."""
    return isinstance(metric, SketchMetric | CurveMetric | ReviewMean)


def merged_scorer(
    metrics: Iterable[Metric],
) -> Callable[[Sketch, FloatArray], dict[str, float]]:
    """Return a function that computes the mergeable ones of the metrics of a panel.

    It takes a sketch with all they need, and the sum and the number of the scores of forgetting
    curves, [curve metrics, 2].
    """
    of_sketch: dict[str, Callable[[Sketch], float]] = {}
    of_curves: list[str] = []
    means: dict[str, ReviewMeanSums] = {}
    for metric in metrics:
        if isinstance(metric, CurveMetric):
            of_curves.append(metric.name)
        elif isinstance(metric, SketchMetric):
            of_sketch[metric.name] = metric.of
        elif isinstance(metric, ReviewMean):
            means[metric.name] = ReviewMeanSums(metric)

    def scores(sketch: Sketch, curves: FloatArray) -> dict[str, float]:
        defined = of_sketch and len(sketch.tally)
        found = {name: of(sketch) if defined else math.nan for name, of in of_sketch.items()}
        sums = curves.tolist() + [sketch[each][0].tolist() for each in means.values()]
        for name, (total, held) in zip([*of_curves, *means], sums, strict=True):
            found[name] = total / held if held else math.nan
        return found

    return scores


def _places(kinds: Sequence[Sums], widths: Sequence[int]) -> tuple[_Place, ...]:
    """Assign columns to every cell of every kind of sums, which have some numbers in each cell."""
    places: list[_Place] = []
    for sums, width in zip(kinds, widths, strict=True):
        places.append(_Place(sums, places[-1].end if places else 0, width))
    return tuple(places)


def _sparse(places: Sequence[_Place], totals: Sequence[Totals]) -> csr_array:
    """Return the sums of some clusters in the columns of their places."""
    groups = len(totals[0].values)
    columns = [
        np.add.outer(place.begin + total.cell * place.columns, np.arange(place.columns)).ravel()
        for place, total in zip(places, totals, strict=True)
    ]
    sums = csr_array(np.concatenate([each.values.reshape(groups, -1) for each in totals], axis=1))
    found = np.concatenate(columns).astype(sums.indices.dtype)[sums.indices]
    return csr_array((sums.data, found, sums.indptr), shape=(groups, places[-1].end))


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
    for number, metric in enumerate(metrics):
        values = metric.per_curve(curves)
        defined = ~np.isnan(values)
        np.add.at(sums[:, number, 0], cluster[at][defined], values[defined])
        np.add.at(sums[:, number, 1], cluster[at], defined)
    return sums
