"""Scores of the pooled predictions of all users, from sums of each user that add up."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from srs_eval.data.reviews import FloatArray, IntArray
from srs_eval.metrics.bootstrap import (
    GROUPS,
    RESAMPLES,
    Table,
    common_cells,
    edges_of,
    group_of,
    half_widths,
    intervals_around,
)
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.predictions import Predictions
from srs_eval.metrics.significance import LEVEL
from srs_eval.metrics.tally import CLIP, Precision, Tally, from_sums
from srs_eval.metrics.threshold import threshold_rows
from srs_eval.metrics.validate import check_predictions

# Cells for all users of a run together.
FINE = 2**20


class FineCounts:
    """Reviews of any number of users counted in cells, none of which reaches across an edge.

    Half of the cells have equal widths, and half have equal steps of log odds, so that near 0 and 1
    predictions are distinguished as finely as their logarithms need. `thresholds` are those of
    `edges_of`.
    """

    def __init__(self, thresholds: Sequence[float]) -> None:
        self.thresholds = thresholds
        self._precision: Precision = np.dtype(np.float16)
        # Forgotten and recalled reviews, and sums of their predictions
        self._counts = np.zeros((3, FINE + 1 + len(edges_of(thresholds))))

    def add(self, cell: IntArray, counts: FloatArray, precision: Precision) -> None:
        """Add the `fine_counts` of predictions of some precision."""
        self._counts[:, cell] += counts
        self._precision = np.promote_types(self._precision, precision)

    def tally(self, **sums: Any) -> Tally:
        """Return the tally of all users, with `sums` of other kinds: see `Tally`."""
        used = np.flatnonzero(self._counts[0] + self._counts[1])
        edges = edges_of(self.thresholds, self._precision)
        first = _fine_cell(edges) + np.arange(1, len(edges) + 1)
        beyond = np.searchsorted(first, used, side="right")
        within = edges[beyond - 1], np.nextafter(edges[beyond], 0)
        return from_sums(self._counts[:, used], self._precision, within=within, **sums)


def fine_counts(tally: Tally, thresholds: Sequence[float]) -> tuple[IntArray, FloatArray]:
    """Return the cells of a tally, increasing, and what they count [3, cells]."""
    edges = edges_of(thresholds, tally.precision)
    cell = _fine_cell(tally.p) + np.searchsorted(edges, tally.p, side="right")
    first = np.flatnonzero(np.diff(cell, prepend=-1))
    columns = (tally.forgotten, tally.recalled, tally.p * tally.count)
    return cell[first], np.stack([np.add.reduceat(column, first) for column in columns])


def _fine_cell(p: FloatArray) -> IntArray:
    inner = np.clip(p, CLIP, 1 - CLIP)
    log_odds = np.log(inner) - np.log1p(-inner)
    share = 0.5 * p + 0.25 * (1 - log_odds / math.log(CLIP))
    return (share * FINE).astype(np.int64)


@dataclass(frozen=True, slots=True)
class UserSums:
    """What pooled scores need of one user."""

    group: int  # See `group_of`
    cell: IntArray  # See `fine_counts`
    counts: FloatArray
    table: Table  # Of one cluster


def user_sums(panel: Panel, predictions: Predictions) -> UserSums:
    """Add up the predictions of one user."""
    check_predictions(predictions)
    everyone = np.zeros(len(predictions), np.int64)
    table = Table.of(predictions, common_cells(panel, predictions.p.dtype), everyone, 1)
    cells = fine_counts(Tally.of(predictions), panel.biases)
    return UserSums(group_of((predictions.users or ("",))[0]), *cells, table)


class PooledSums:
    """Sums of users, added one after the other, from which pooled scores are computed.

    Above 10,000 users, the sums of 10,000 groups of users are kept instead of those of each.
    """

    def __init__(self, panel: Panel, users: Iterable[Predictions] = ()) -> None:
        self.panel = panel
        self.users = 0
        self.fine = FineCounts(panel.biases)
        self._waiting: list[tuple[Table, int]] = []
        self._table: Table | None = None  # Of users, or of groups of them
        self._group = np.zeros(0, np.int64)  # Of each cluster of the table
        for predictions in users:
            self.add(user_sums(panel, predictions))

    @property
    def are_grouped(self) -> bool:
        """Whether users are added up in groups."""
        return self.users > GROUPS

    def add(self, user: UserSums) -> None:
        """Add one user more."""
        self.users += 1
        self.fine.add(user.cell, user.counts, user.table.precision)
        self._waiting.append((user.table, user.group))
        if len(self._waiting) == GROUPS:
            self.table()

    def table(self) -> Table | None:
        """Return the sums of each user, or of each group that has users; None if there are none."""
        if self._waiting:
            tables, groups = zip(*self._waiting, strict=True)
            before = [] if self._table is None else [self._table]
            self._table, self._waiting = Table.stacked([*before, *tables]), []
            self._group = np.append(self._group, groups)
        if self.are_grouped and self._table is not None:
            names, code = np.unique(self._group, return_inverse=True)
            self._table, self._group = self._table.grouped(code, len(names)), names
        return self._table


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
    sums: PooledSums, *, resamples: int = RESAMPLES, seed: int = 0, level: float = LEVEL
) -> PooledScores:
    """Score the pooled predictions of some users, with intervals from resampling users.

    What depends on the order of predictions is computed from 2**20 cells that get narrower towards
    0 and 1. Predictions closer to each other than two millionths and than 1.3e-4 of their distance
    from 0 or 1 count as ties. Metrics of predictions are NaN. Above 10,000 users, groups of them
    are resampled.
    """
    panel, table = sums.panel, sums.table()
    if table is None:
        return PooledScores(panel.of(None), dict.fromkeys(panel.names, (math.nan, math.nan)), ())
    edges = common_cells(panel, table.precision)
    (coarse,) = table.weighted(np.ones((1, len(table))), edges)
    tally = sums.fine.tally(**coarse.sums)
    scores = panel.of(tally)
    widths = half_widths(panel, table, edges, resamples=resamples, seed=seed, level=level)
    intervals = intervals_around(panel, scores, widths)
    thresholds = threshold_rows(tally, panel.biases, level=level)
    return PooledScores(scores, intervals, thresholds, sums.are_grouped)
