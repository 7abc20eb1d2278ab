"""Bootstrap of clusters: users, or the cards and days of one user; and all users pooled.

Reviews of a cluster are alike. Resampling weights each cluster by how often it is drawn, so all
resamples of all metrics follow from one table of sums with a row for each cluster. Sums of users
add up to those of all, so that users are pooled one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from heapq import nsmallest
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, hstack, vstack
from scipy.special import expit, stdtrit

from srs_eval.data.reviews import FloatArray, IntArray, User
from srs_eval.metrics.bins import FSRS_OPTIMIZER, WIKI_2024
from srs_eval.metrics.means import FEWEST_EFFECTIVE, UNKNOWN, clipped, effective_users
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.predictions import Predictions, check_predictions
from srs_eval.metrics.scores import LOG_BINS
from srs_eval.metrics.significance import LEVEL
from srs_eval.metrics.tally import CLIP, DOUBLE, Precision, Tally, from_sums, log_losses
from srs_eval.metrics.temporal import curve_columns, reviews_of_curves
from srs_eval.metrics.threshold import bias_threshold, nearby, rows_near, threshold_rows

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
# Cells for all users of a run together.
FINE = 2**20
BINS = (FSRS_OPTIMIZER, WIKI_2024)
FineCells = tuple[IntArray, FloatArray, Precision]  # See `fine_counts`
# What pooled scores need of a user: fine counts, and the `cluster_sums` of one cluster.
UserSums = tuple[FineCells, csr_array]


def sample_of(users: Sequence[User], size: int) -> Sequence[User]:
    """Return the users with the smallest digests of their names, in their order."""
    if len(users) <= size:
        return users
    chosen = set(nsmallest(size, users, key=lambda user: sha256(str(user).encode()).digest()))
    return [user for user in users if user in chosen]


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
    low, high = np.reshape([*map(nearby, thresholds)], (-1, 2)).astype(precision).T
    acted_on = np.concatenate([np.array(thresholds, precision), np.nextafter(low, high), high])
    log_bins = np.log(np.arange(2, LOG_BINS + 1)) / math.log(LOG_BINS + 1)
    return np.sort(np.concatenate([[0.0, 2.0], np.arange(1, 10) / 10, log_bins, acted_on]))


def cell_edges(panel: Panel, precision: Precision, tally: Tally | None = None) -> FloatArray:
    """Return the edges of cells of predictions.

    They separate the predictions of a tally as well as possible, or else are the same for all.
    """
    if tally is None:
        edges: FloatArray = np.linspace(0, 1, EQUAL_WIDTHS, endpoint=False)
    else:
        shares = np.linspace(0, tally.n, EQUAL_SHARES, endpoint=False)
        edges = tally.p[np.searchsorted(np.cumsum(tally.count), shares, side="right")]
    steps = expit(np.linspace(math.log(CLIP), -math.log(CLIP), EQUAL_STEPS))
    return np.sort(np.concatenate([edges_of(panel.biases, precision), edges, steps]))


def cluster_sums(
    predictions: Predictions, edges: FloatArray, cluster: IntArray, clusters: int
) -> csr_array:
    """Add up checked predictions by cluster and cell [clusters, 3 * cells].

    Each cell has three sums. Cells of one kind follow those of another, see `first_cells`: the
    counts between edges, which are forgotten and recalled reviews and sums of their predictions;
    losses and curves as in `Tally`, in one cell each; and each of `BINS`.
    """
    tables = []
    kinds = zip(_kinds(predictions, edges, cluster), np.diff(first_cells(edges)), strict=True)
    for (row, cell, values), cells in kinds:
        used, of = np.unique(row * cells + cell, return_inverse=True)
        sums = np.column_stack([np.bincount(of, value, len(used)) for value in values])
        place = 3 * (used % cells)[:, None] + np.arange(3)
        at = np.repeat(used // cells, 3), place.ravel()
        tables.append(csr_array((sums.ravel(), at), (clusters, 3 * int(cells))))
        tables[-1].eliminate_zeros()
    return hstack(tables, format="csr")


def _kinds(
    predictions: Predictions, edges: FloatArray, cluster: IntArray
) -> Iterator[tuple[IntArray, Any, Any]]:
    """Yield clusters, cells and three values of reviews, one kind after the other."""
    p, recalled = predictions.p.astype(np.float64, copy=False), predictions.recalled
    yield cluster, edges.searchsorted(p, "right") - 1, (~recalled, recalled, p)
    certain_wrong = np.where(recalled, p < CLIP, p > 1 - CLIP)
    yield cluster, 0, (log_losses(p, recalled), (p - recalled) ** 2, certain_wrong)
    yield cluster[reviews_of_curves(predictions)], 0, curve_columns(predictions.curves)
    for bins in BINS:
        yield cluster, *bins.columns(predictions)


def first_cells(edges: FloatArray) -> IntArray:
    """First cell of each kind of `cluster_sums`, and the number of all cells."""
    return np.cumsum([0, len(edges), 1, 1, *(math.prod(bins.shape) for bins in BINS)])


def tallies(
    table: csr_array, blocks: Iterable[FloatArray], edges: FloatArray, precision: Precision
) -> Iterator[Tally]:
    """Yield the tally of a table for each row of blocks of weights [resamples, clusters]."""
    first = first_cells(edges)
    cell, number = np.divmod(table.indices, 3)
    is_used = np.bincount(cell, minlength=first[-1]) > 0
    is_used[first[1:3]] = True  # there are losses and curves, if none
    used = np.flatnonzero(is_used)
    place = 3 * (np.cumsum(is_used) - 1)[cell] + number
    few: Any = csr_array((table.data, place, table.indptr), (table.shape[0], 3 * len(used)))
    if few.nnz > DENSE * math.prod(few.shape):
        few = few.toarray()
    ends = np.searchsorted(used, first[1:-1])
    within = edges[used[: ends[0]]], np.nextafter(edges[used[: ends[0]] + 1], 0)
    drawn = (each for weights in blocks for each in (weights @ few).reshape(len(weights), -1, 3))
    for sums in drawn:
        counts, losses, curves, *each = np.split(sums, ends)
        bins = {kind: of[of[:, 0] != 0] for kind, of in zip(BINS, each, strict=True)}
        others: dict[str, Any] = {"losses": losses[0], "curves": curves[0], "bins": bins}
        yield from_sums(counts.T, precision, within=within, **others)


def half_widths(
    panel: Panel,
    table: csr_array,
    edges: FloatArray,
    precision: Precision,
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
    counted = np.tile([1.0, 1.0, 0.0], len(edges))
    clusters, effective = table.shape[0], effective_users(table[:, : len(counted)] @ counted)
    if clusters < FEWEST_CLUSTERS or not effective >= FEWEST_EFFECTIVE:
        return widths
    metrics = [metric for metric in panel if metric.of_tally and metric.has_interval]
    resampled = [
        [metric.function(tally) if len(tally) else math.nan for metric in metrics]
        for tally in tallies(table, cluster_counts(clusters, resamples, seed), edges, precision)
    ]
    t = float(stdtrit(effective - 1, (1 + level) / 2))
    factor = t * math.sqrt(effective / (effective - 1))
    for metric, scores in zip(metrics, np.transpose(resampled), strict=True):
        defined = scores[np.isfinite(scores)]
        if len(defined) > 1:
            widths[metric.name] = factor * float(defined.std(ddof=1))
    return widths


def cluster_intervals(
    panel: Panel,
    predictions: Predictions,
    columns: Sequence[str] = ("card", "day"),
    tally: Tally | None = None,
    **options: Any,
) -> dict[str, tuple[float, float]]:
    """Compute intervals of scores, from resampling cards and days of one user, or users.

    Reviews of a card are alike, and so are reviews of a day: squares of half widths of several
    `columns` are added. `tally` is that of the predictions, if it is known; `options` are those of
    `half_widths`. NaN where it is for any column: too few clusters of any kind say nothing, nor do
    outcomes that are all alike (of a bias, those near its threshold), as resamples have no others.
    """
    tally = tally or panel.tally(predictions)
    if tally is None:
        return dict.fromkeys(panel.names, UNKNOWN)
    edges, squares = cell_edges(panel, tally.precision, tally), np.zeros(len(panel.names))
    for name in columns:
        if (labels := getattr(predictions, name)) is not None:
            distinct, cluster = np.unique(labels, return_inverse=True)
            table = cluster_sums(predictions, edges, cluster, len(distinct))
            widths = half_widths(panel, table, edges, tally.precision, **options)
            squares += np.square([*widths.values()])
    for number, name in enumerate(panel.names):
        threshold = bias_threshold(name)
        rows = slice(None) if threshold is None else rows_near(tally, threshold)
        if not (tally.forgotten[rows].any() and tally.recalled[rows].any()):
            squares[number] = math.nan
    widths = dict(zip(panel.names, np.sqrt(squares).tolist(), strict=True))
    return intervals_around(panel, panel.of(tally), widths)


def intervals_around(
    panel: Panel, scores: Mapping[str, float], widths: Mapping[str, float]
) -> dict[str, tuple[float, float]]:
    """Return intervals around scores, clipped to the bounds of the metrics."""
    intervals = {}
    for metric in panel:
        score, half = scores[metric.name], widths[metric.name]
        intervals[metric.name] = clipped((score - half, score + half), metric.bounds)
    return intervals


class FineCounts:
    """Reviews of any number of users counted in cells, none of which reaches across an edge.

    Half of the cells have equal widths, and half have equal steps of log odds, so that near 0 and 1
    predictions are distinguished as finely as their logarithms need. `thresholds` are those of
    `edges_of`.
    """

    def __init__(self, thresholds: Sequence[float]) -> None:
        self.thresholds = thresholds
        self.precision: Precision = np.dtype(np.float16)
        # Forgotten and recalled reviews, and sums of their predictions
        self._counts = np.zeros((3, FINE + 1 + len(edges_of(thresholds))))

    def add(self, cell: IntArray, counts: FloatArray, precision: Precision) -> None:
        """Add the `fine_counts` of a tally."""
        self._counts[:, cell] += counts
        self.precision = np.promote_types(self.precision, precision)

    def tally(self, **sums: Any) -> Tally:
        """Return the tally of all users, with `sums` of other kinds: see `Tally`."""
        used = np.flatnonzero(self._counts[0] + self._counts[1])
        edges = edges_of(self.thresholds, self.precision)
        first = _fine_cell(edges) + np.arange(1, len(edges) + 1)
        beyond = np.searchsorted(first, used, side="right")
        within = edges[beyond - 1], np.nextafter(edges[beyond], 0)
        return from_sums(self._counts[:, used], self.precision, within=within, **sums)


def fine_counts(tally: Tally, thresholds: Sequence[float]) -> FineCells:
    """Return the cells of a tally, increasing, what they count [3, cells], and the precision."""
    edges = edges_of(thresholds, tally.precision)
    cell = _fine_cell(tally.p) + np.searchsorted(edges, tally.p, side="right")
    return *tally.in_cells(cell), tally.precision


def _fine_cell(p: FloatArray) -> IntArray:
    inner = np.clip(p, CLIP, 1 - CLIP)
    log_odds = np.log(inner) - np.log1p(-inner)
    share = 0.5 * p + 0.25 * (1 - log_odds / math.log(CLIP))
    return (share * FINE).astype(np.int64)


def user_sums(panel: Panel, predictions: Predictions) -> UserSums:
    """Add up the predictions of one user."""
    check_predictions(predictions)
    everyone = np.zeros(len(predictions), np.int64)
    edges = cell_edges(panel, predictions.p.dtype)
    counts = fine_counts(Tally.of(predictions), panel.biases)
    return counts, cluster_sums(predictions, edges, everyone, 1)


class PooledSums:
    """Sums of users, added one after the other, from which pooled scores are computed.

    Above 10,000 users, the sums of 10,000 groups of users are kept instead of those of each.
    """

    def __init__(self, panel: Panel, users: Iterable[Predictions] = ()) -> None:
        self.panel = panel
        self.fine = FineCounts(panel.biases)
        self._tables: list[csr_array] = []
        for predictions in users:
            self.add(user_sums(panel, predictions))

    def add(self, sums: UserSums) -> None:
        """Add one user more."""
        counts, table = sums
        self.fine.add(*counts)
        self._tables.append(table)
        if len(self._tables) > GROUPS:
            self.table()

    def table(self) -> csr_array:
        """Return the sums of each user, or of each group of them."""
        table = vstack(self._tables, format="csr")
        if (users := table.shape[0]) > GROUPS:
            number = np.arange(users)
            groups = csr_array((np.ones(users), (number % GROUPS, number)), (GROUPS, users))
            table = groups @ table
        self._tables = [table]
        return self._tables[0]


class PooledScores(NamedTuple):
    """Scores of the pooled predictions of all users."""

    scores: Mapping[str, float]  # The panel; NaN where a metric is not defined
    # From resampling users; NaN with fewer than five of them
    intervals: Mapping[str, tuple[float, float]]
    # Counts, rates and intervals for each threshold: see `threshold_rows`
    thresholds: tuple[Mapping[str, float], ...]


def pool(
    sums: PooledSums, *, resamples: int = RESAMPLES, seed: int = 0, level: float = LEVEL
) -> PooledScores:
    """Score the pooled predictions of some users, with intervals from resampling users.

    What depends on the order of predictions is computed from 2**20 cells that get narrower towards
    0 and 1. Predictions closer to each other than two millionths and than 1.3e-4 of their distance
    from 0 or 1 count as ties. Metrics of predictions are NaN. Above 10,000 users, groups of them
    are resampled.
    """
    panel, table, precision = sums.panel, sums.table(), sums.fine.precision
    edges = cell_edges(panel, precision)
    (coarse,) = tallies(table, [np.ones((1, table.shape[0]))], edges, precision)
    tally = sums.fine.tally(**coarse.sums)
    scores = panel.of(tally)
    options: dict[str, Any] = {"resamples": resamples, "seed": seed, "level": level}
    widths = half_widths(panel, table, edges, precision, **options)
    intervals = intervals_around(panel, scores, widths)
    thresholds = threshold_rows(tally, panel.biases, level=level)
    return PooledScores(scores, intervals, thresholds)
