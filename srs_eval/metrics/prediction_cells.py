"""Predictions counted in cells: tallies that add up over users and resamples.

A cell keeps its mean prediction, so what is computed from cells is off by the square of their
width where predictions are spread out. Predictions in a cell that differ count as ties.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from srs_eval.metrics.tally import DOUBLE, Precision, Tally, from_sums
from srs_eval.nouns import BoolArray, FloatArray, IntArray, Predictions

# Enough for the spread of resampled numbers, and few enough for a table of 10,000 users.
COARSE = 2**10
# For all users of a run together: an area under the curve within 1e-6.
FINE = 2**20


@dataclass(frozen=True, slots=True)
class PredictionCells:
    """Counts outcomes, and adds up predictions, in equal cells of [0, 1] and one for 1."""

    width: int = COARSE

    @property
    def cells(self) -> int:
        """Number of cells."""
        return self.width + 1

    def cell(self, predictions: Predictions) -> IntArray:
        """Find the cell of each prediction."""
        return cell_of(predictions.p, self.width)

    def values(self, predictions: Predictions) -> Sequence[FloatArray | BoolArray]:
        """Whether forgotten, whether recalled, and the prediction."""
        recalled = predictions.recalled
        return ~recalled, recalled, predictions.p


def cell_of(p: FloatArray, width: int) -> IntArray:
    """Find the cell each prediction lies in; 1 has one of its own."""
    return (p.astype(np.float64, copy=False) * width).astype(np.int64)


def tally_of_cells(sums: FloatArray, precision: Precision = DOUBLE) -> Tally:
    """Make a tally of what the columns of `PredictionCells` came to [cells, 3]."""
    forgotten, recalled, total = sums.T
    return from_sums(forgotten, recalled, total, precision)


class FineCells:
    """A running total over any number of reviews, in constant memory.

    Parameters
    ----------
    width : int
        Number of cells.
    """

    def __init__(self, width: int = FINE) -> None:
        self._width = width
        self._forgotten, self._recalled, self._total = np.zeros((3, width + 1))
        self._precision: Precision = np.dtype(np.float16)

    def add(self, counted: Tally) -> None:
        """Count some predictions more."""
        cell = cell_of(counted.p, self._width)
        np.add.at(self._forgotten, cell, counted.forgotten)
        np.add.at(self._recalled, cell, counted.recalled)
        np.add.at(self._total, cell, counted.p * counted.count)
        self._precision = np.promote_types(self._precision, counted.precision)

    def tally(self) -> Tally:
        """Make a tally of all that was counted."""
        return from_sums(self._forgotten, self._recalled, self._total, self._precision)
