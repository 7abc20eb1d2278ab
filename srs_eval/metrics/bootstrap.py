"""Bootstrap of clusters: users, or the cards and days of one user.

Reviews of a cluster are alike. Resampling weights each cluster by how often it is drawn, so all
resamples of all metrics follow from one table of sums with a row for each cluster.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from scipy.special import expit, stdtrit

from srs_eval.data.reviews import FloatArray, IntArray, User
from srs_eval.metrics.bins import FSRS_OPTIMIZER, WIKI_2024, Bins, bin_columns
from srs_eval.metrics.means import FEWEST_EFFECTIVE, effective_users
from srs_eval.metrics.metric import Metric
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.predictions import Predictions
from srs_eval.metrics.scores import LOG_BINS
from srs_eval.metrics.significance import LEVEL
from srs_eval.metrics.summary import clipped
from srs_eval.metrics.tally import CLIP, DOUBLE, Precision, Tally, from_sums, losses_of
from srs_eval.metrics.temporal import curve_columns, reviews_of_curves
from srs_eval.metrics.threshold import bias_threshold, nearby, rows_near

RESAMPLES = 200
# More users than this are resampled in as many groups.
GROUPS = 10_000
FEWEST_CLUSTERS = 5
# Share of sums that are not 0 from which on a whole table is quicker to multiply.
DENSE = 0.15
# Draws in memory at once: 10,000 users are resampled 200 times in a block.
BLOCK = 2_000_000
# Cells of equally many predictions, and of equal steps of log odds.
EQUAL_SHARES, EQUAL_STEPS = 512, 192
# Cells of equal width, where the predictions of other users are not known.
EQUAL_WIDTHS = 1024
# Log odds of the most certain predictions.
LARGEST_LOG_ODDS = -math.log(CLIP)
BINS = (FSRS_OPTIMIZER, WIKI_2024)


def group_of(user: User) -> int:
    """Return the group of a user, from 0 to `GROUPS` - 1, which depends on the name alone."""
    return int.from_bytes(_digest(user)[:8], "big") % GROUPS


def sample_of(users: Sequence[User], size: int) -> Sequence[User]:
    """Return the users with the smallest digests of their names, in their order."""
    if len(users) <= size:
        return users
    chosen = set(nsmallest(size, users, key=_digest))
    return [user for user in users if user in chosen]


def _digest(user: User) -> bytes:
    return hashlib.sha256(str(user).encode()).digest()


def cluster_counts(clusters: int, resamples: int, seed: int) -> Iterator[FloatArray]:
    """Yield blocks [b, clusters] of how often each cluster is drawn, always the same."""
    rng = np.random.default_rng(seed)
    size = max(1, BLOCK // clusters)
    for begin in range(0, resamples, size):
        rows = min(size, resamples - begin)
        draws = rng.integers(0, clusters, (rows, clusters))
        draws += np.arange(rows)[:, None] * clusters
        counts = np.bincount(draws.ravel(), minlength=rows * clusters)
        yield counts.reshape(rows, clusters).astype(np.float64)


def edges_of(thresholds: Sequence[float], precision: Precision = DOUBLE) -> FloatArray:
    """Return predictions that cells must not reach across, 0 first and 2 last.

    They are those that metrics treat apart: at and near thresholds, which are rounded to a
    precision, and in the bins of ECE and of RMSE(bins) by prediction.
    """
    low, high = (
        np.reshape([nearby(threshold) for threshold in thresholds], (-1, 2)).astype(precision).T
    )
    acted_on = np.concatenate([np.array(thresholds, precision), np.nextafter(low, high), high])
    log_bins = np.log(np.arange(2, LOG_BINS + 1)) / math.log(LOG_BINS + 1)
    return np.sort(np.concatenate([[0.0, 2.0], np.arange(1, 10) / 10, log_bins, acted_on]))


def own_cells(panel: Panel, tally: Tally) -> FloatArray:
    """Return the edges of cells that separate these predictions as well as possible."""
    shares = np.linspace(0, tally.n, EQUAL_SHARES, endpoint=False)
    number = np.cumsum(tally.count)
    return _cells(panel, tally.p[np.searchsorted(number, shares, side="right")], tally.precision)


def common_cells(panel: Panel, precision: Precision) -> FloatArray:
    """Return the edges of cells that are the same for all users."""
    return _cells(panel, np.linspace(0, 1, EQUAL_WIDTHS, endpoint=False), precision)


def _cells(panel: Panel, edges: FloatArray, precision: Precision) -> FloatArray:
    steps = expit(np.linspace(-LARGEST_LOG_ODDS, LARGEST_LOG_ODDS, EQUAL_STEPS))
    return np.sort(np.concatenate([edges_of(panel.biases, precision), edges, steps]))


@dataclass(frozen=True, slots=True)
class Table:
    """Sums of clusters of reviews: three columns of each kind, by cluster and cell.

    Kinds are ``counts``, forgotten and recalled reviews and the sums of their predictions;
    ``losses`` and ``curves``, of which there is one cell, as in `Tally`; and each of `BINS`.
    """

    precision: Precision  # Of the predictions
    sums: Mapping[str | Bins, csr_array]  # [3 clusters, cells]: Columns 0 to 2 of each cluster

    @classmethod
    def of(
        cls, predictions: Predictions, edges: FloatArray, cluster: IntArray, clusters: int
    ) -> Table:
        """Add up checked predictions, in cells with some edges, by the cluster of each review."""
        p, recalled = predictions.p.astype(np.float64, copy=False), predictions.recalled
        cell, one = np.searchsorted(edges, p, side="right") - 1, np.zeros(len(p), np.int64)
        kinds: dict[str | Bins, Any] = {
            "counts": (cluster, cell, len(edges), (~recalled, recalled, p)),
            "losses": (cluster, one, 1, losses_of(p, recalled)),
        }
        for bins in BINS:
            kinds[bins] = cluster, bins.cell(predictions), bins.cells, bin_columns(predictions)
        rates = curve_columns(predictions.curves)
        of_curves = cluster[reviews_of_curves(predictions)]
        kinds["curves"] = of_curves, np.zeros_like(of_curves), 1, rates
        sums = {kind: _added_up(clusters, *columns) for kind, columns in kinds.items()}
        return cls(predictions.p.dtype, sums)

    def __len__(self) -> int:
        return self.sums["losses"].shape[0] // 3

    @property
    def reviews(self) -> FloatArray:
        """Reviews of each cluster."""
        counts = self.sums["counts"]
        return np.asarray((counts[::3] + counts[1::3]).sum(axis=1))

    @classmethod
    def stacked(cls, tables: Sequence[Table]) -> Table:
        """Concatenate the clusters of several tables with the same cells."""
        precision = np.result_type(*(table.precision for table in tables))
        parts = {kind: [table.sums[kind] for table in tables] for kind in tables[0].sums}
        return cls(precision, {kind: vstack(each, format="csr") for kind, each in parts.items()})

    def grouped(self, group: IntArray, groups: int) -> Table:
        """Add up the clusters of each group."""
        rows = (3 * group[:, None] + np.arange(3)).ravel()
        shape = 3 * groups, len(rows)
        to = csr_array((np.ones(len(rows)), (rows, np.arange(len(rows)))), shape)
        return Table(self.precision, {kind: to @ of for kind, of in self.sums.items()})

    def weighted(self, weights: FloatArray, edges: FloatArray) -> Iterator[Tally]:
        """Yield the tally of all clusters for each row of weights [resamples, clusters].

        `edges` are those of the cells.
        """
        sums = {kind: _products(weights, of) for kind, of in self.sums.items()}
        cells, counts = sums["counts"]
        within = edges[cells], np.nextafter(edges[cells + 1], 0)
        for number in range(len(weights)):
            bins = {kind: sums[kind][1][number].T for kind in BINS}
            yield from_sums(
                counts[number],
                self.precision,
                within=within,
                losses=sums["losses"][1][number, :, 0],
                curves=sums["curves"][1][number, :, 0],
                bins={kind: of[of[:, 0] != 0] for kind, of in bins.items()},
            )


def _added_up(
    clusters: int, cluster: IntArray, cell: IntArray, cells: int, columns: Sequence[Any]
) -> csr_array:
    """Add up three columns [n] by cluster and cell [3 clusters, cells]."""
    rows = np.concatenate([3 * cluster + number for number in range(3)])
    values = np.concatenate(columns, dtype=np.float64, casting="unsafe")
    return csr_array((values, (rows, np.tile(cell, 3))), (3 * clusters, cells))


def _products(weights: FloatArray, table: csr_array) -> tuple[IntArray, FloatArray]:
    """Return the cells that hold anything, and weighted sums there [resamples, 3, used]."""
    is_used = np.bincount(table.indices, minlength=table.shape[1]) > 0
    used = np.flatnonzero(is_used) if table.shape[1] > 1 else np.zeros(1, np.int64)
    place = (np.cumsum(is_used) - 1)[table.indices]
    few: Any = csr_array((table.data, place, table.indptr), (table.shape[0], len(used)))
    if few.nnz > DENSE * math.prod(few.shape):
        few = few.toarray()
    sums = [weights @ few[column::3] for column in range(3)]
    return used.astype(np.int64), np.stack(sums, axis=1)


def half_widths(
    panel: Panel,
    table: Table,
    edges: FloatArray,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = LEVEL,
) -> dict[str, float]:
    """Compute half the width of each metric's interval when the clusters of a table are resampled.

    The spread of the resampled scores by Student's t, with degrees of freedom one less than Kish's
    effective number of clusters: the same draws for all metrics, and for every set of equally many
    clusters with the same seed. NaN with fewer than five clusters, where one outweighs all others,
    where a metric is hardly ever defined, and for metrics of predictions.
    """
    widths = dict.fromkeys(panel.names, math.nan)
    effective = effective_users(table.reviews)
    if len(table) < FEWEST_CLUSTERS or not effective >= FEWEST_EFFECTIVE:
        return widths
    metrics = [metric for metric in panel if metric.of_tally and metric.has_interval]
    resampled = np.array(
        [
            [metric.function(tally) if len(tally) else math.nan for metric in metrics]
            for weights in cluster_counts(len(table), resamples, seed)
            for tally in table.weighted(weights, edges)
        ]
    ).reshape(-1, len(metrics))
    t = float(stdtrit(effective - 1, (1 + level) / 2))
    factor = t * math.sqrt(effective / (effective - 1))
    for metric, scores in zip(metrics, resampled.T, strict=True):
        defined = scores[np.isfinite(scores)]
        if len(defined) > 1:
            widths[metric.name] = factor * float(defined.std(ddof=1))
    return widths


def cluster_intervals(
    panel: Panel,
    predictions: Predictions,
    labels: Sequence[NDArray[Any]],
    tally: Tally,
    scores: Mapping[str, float],
    **options: Any,
) -> dict[str, tuple[float, float]]:
    """Compute intervals around scores; squares of half widths of several clusterings are added.

    Each of `labels` is a clustering: the cluster of each review. `tally` and `scores` are those of
    the predictions; `options` are those of `half_widths`. NaN where it is for any clustering: too
    few clusters of any kind say nothing, nor do outcomes that are all alike (of a bias, those near
    its threshold), as resamples have no others.
    """
    edges, squares = own_cells(panel, tally), np.zeros(len(panel.names))
    for label in labels:
        distinct, cluster = np.unique(label, return_inverse=True)
        if len(distinct) < FEWEST_CLUSTERS:
            squares += math.nan
            continue
        table = Table.of(predictions, edges, cluster, len(distinct))
        squares += np.square([*half_widths(panel, table, edges, **options).values()])
    squares[[_are_alike(metric, tally) for metric in panel]] = math.nan
    widths = dict(zip(panel.names, np.sqrt(squares).tolist(), strict=True))
    return intervals_around(panel, scores, widths)


def _are_alike(metric: Metric, tally: Tally) -> bool:
    """Whether a metric rests on recalled reviews alone, or on forgotten ones alone."""
    threshold = bias_threshold(metric.name)
    rows = slice(None) if threshold is None else rows_near(tally, threshold)
    return not (tally.forgotten[rows].any() and tally.recalled[rows].any())


def single_user_intervals(
    panel: Panel, predictions: Predictions, **options: Any
) -> dict[str, tuple[float, float]]:
    """Compute intervals of one user's scores, from resampling that user's cards, and days.

    Reviews of a card are alike, and so are reviews of a day: see `cluster_intervals`.
    """
    tally = panel.tally(predictions)
    if tally is None:
        return dict.fromkeys(panel.names, (math.nan, math.nan))
    labels = [predictions.card] + ([] if predictions.day is None else [predictions.day])
    return cluster_intervals(panel, predictions, labels, tally, panel.of(tally), **options)


def intervals_around(
    panel: Panel, scores: Mapping[str, float], widths: Mapping[str, float]
) -> dict[str, tuple[float, float]]:
    """Return intervals around scores, clipped to the bounds of the metrics."""
    halves = ((metric, scores[metric.name], widths[metric.name]) for metric in panel)
    return {
        metric.name: clipped((score - half, score + half), metric.bounds)
        for metric, score, half in halves
    }
