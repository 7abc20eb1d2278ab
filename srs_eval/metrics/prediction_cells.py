"""Predictions counted in cells: tallies that add up over users and resamples.

A cell keeps its mean prediction, so what is computed from cells is off by the square of their
width where predictions are spread out. Predictions in a cell that differ count as ties.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from srs_eval.metrics.proper import CLIP
from srs_eval.metrics.tally import DOUBLE, Precision, Tally, from_sums
from srs_eval.nouns import BoolArray, FloatArray, IntArray, Predictions

# Cells of equally many predictions, and of equal steps of log odds, for resampled clusters:
# enough for a spread, and few enough for a table of 10,000 users.
EQUAL_SHARES, EQUAL_STEPS = 512, 192
# Cells for all users of a run together.
FINE = 2**20
# Log odds of the most certain predictions.
LARGEST_LOG_ODDS = -math.log(CLIP)


@dataclass(frozen=True, slots=True, eq=False)
class PredictionCells:
    """Counts outcomes, and adds up predictions, between some edges."""

    edges: FloatArray  # [cells], increasing, the first 0: Where each cell begins

    @classmethod
    def for_predictions(cls, counted: Tally) -> PredictionCells:
        """Choose edges that separate these predictions as well as possible."""
        number = np.cumsum(counted.count)
        shares = np.linspace(0, number[-1], EQUAL_SHARES, endpoint=False)
        equal = counted.p[np.searchsorted(number, shares, side="right")]
        steps = expit(np.linspace(-LARGEST_LOG_ODDS, LARGEST_LOG_ODDS, EQUAL_STEPS))
        return cls(np.unique(np.concatenate([[0.0], equal, steps])))

    @property
    def cells(self) -> int:
        return len(self.edges)

    def cell(self, predictions: Predictions) -> IntArray:
        p = predictions.p.astype(np.float64, copy=False)
        found: IntArray = np.searchsorted(self.edges, p, side="right") - 1
        return found

    def values(self, predictions: Predictions) -> Sequence[FloatArray | BoolArray]:
        recalled = predictions.recalled
        return ~recalled, recalled, predictions.p.astype(np.float64, copy=False)


def tally_of_cells(sums: FloatArray, precision: Precision = DOUBLE) -> Tally:
    """Build a tally from totals of `PredictionCells` [cells, 3]."""
    forgotten, recalled, total = sums.T
    return from_sums(forgotten, recalled, total, precision)


def fine_cell(p: FloatArray, width: int = FINE) -> IntArray:
    """Find a cell for each prediction [n], from 0 to `width`, in the order of predictions.

    Half of the cells have equal widths, and half have equal steps of log odds, so that near 0
    and 1 predictions are distinguished as finely as their logarithms need.
    """
    inner = np.clip(p, CLIP, 1 - CLIP)
    log_odds = np.log(inner) - np.log1p(-inner)
    share = 0.5 * p + 0.25 * (1 + log_odds / LARGEST_LOG_ODDS)
    return (share * width).astype(np.int64)


class FineCells:
    """A running total over any number of reviews, in constant memory."""

    def __init__(self, width: int = FINE) -> None:
        self._width = width
        self._forgotten, self._recalled, self._total = np.zeros((3, width + 1))
        self._precision: Precision = np.dtype(np.float16)

    def add(self, counted: Tally) -> None:
        """Count some predictions more."""
        cell = fine_cell(counted.p, self._width)
        np.add.at(self._forgotten, cell, counted.forgotten)
        np.add.at(self._recalled, cell, counted.recalled)
        np.add.at(self._total, cell, counted.p * counted.count)
        self._precision = np.promote_types(self._precision, counted.precision)

    def tally(self) -> Tally:
        """Make a tally of all that was counted."""
        return from_sums(self._forgotten, self._recalled, self._total, self._precision)
