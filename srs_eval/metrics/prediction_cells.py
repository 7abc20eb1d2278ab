"""Predictions counted in cells: tallies that add up over users and resamples.

A cell keeps its mean prediction, so what is computed from cells is off by the square of their
width where predictions are spread out. Predictions in a cell that differ count as ties.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from srs_eval.metrics.proper import CLIP
from srs_eval.metrics.tally import Precision, Tally, from_sums
from srs_eval.nouns import BoolArray, FloatArray, IntArray, Predictions

# Cells of equally many predictions, and of equal steps of log odds, for resampled clusters:
# enough for a spread, and few enough for a table of 10,000 users.
EQUAL_SHARES, EQUAL_STEPS = 512, 192
# Cells of equal width, where the predictions of other users are not known.
EQUAL_WIDTHS = 1024
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
        return cls._with_steps(counted.p[np.searchsorted(number, shares, side="right")])

    @classmethod
    def fixed(cls) -> PredictionCells:
        """Return the edges that are the same for all users, models and runs."""
        return cls._with_steps(np.linspace(0, 1, EQUAL_WIDTHS, endpoint=False))

    @classmethod
    def _with_steps(cls, edges: FloatArray) -> PredictionCells:
        """Add equal steps of log odds to some edges."""
        steps = expit(np.linspace(-LARGEST_LOG_ODDS, LARGEST_LOG_ODDS, EQUAL_STEPS))
        return cls(np.unique(np.concatenate([[0.0], edges, steps])))

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
    """A running total over any number of reviews, in constant memory.

    Predictions are added up in whole units of 2**-57, so that totals do not depend on the order
    of reviews, as long as a cell holds fewer than 2**35 of them.
    """

    _HIGH, _LOW = 2.0**28, 2.0**29

    def __init__(self, width: int = FINE) -> None:
        self._width = width
        # Forgotten, recalled, and the two halves of the sum of predictions.
        self._sums = np.zeros((4, width + 1), np.uint64)
        self._precision: Precision = np.dtype(np.float16)

    def add(self, predictions: Predictions) -> None:
        """Count some predictions more, in any order."""
        p, recalled = predictions.p.astype(np.float64, copy=False), predictions.recalled
        high, low = np.divmod(p * self._HIGH, 1.0)
        cell = fine_cell(p, self._width)
        columns = (~recalled, recalled, high, np.rint(low * self._LOW))
        for sums, values in zip(self._sums, columns, strict=True):
            np.add.at(sums, cell, values.astype(np.uint64))
        self._precision = np.promote_types(self._precision, predictions.p.dtype)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the cells that hold reviews, and their sums: input of `extend`."""
        held = self._held()
        sums = dict(zip(_FINE_SUMS, self._sums[:, held], strict=True))
        size = np.array([self._precision.itemsize])
        return {"fine_cell": held.astype(np.uint32), **sums, "fine_precision": size}

    def extend(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Add the sums of `arrays`."""
        cell = arrays["fine_cell"].astype(np.int64)
        for sums, name in zip(self._sums, _FINE_SUMS, strict=True):
            np.add.at(sums, cell, arrays[name])
        precision = np.dtype(f"f{int(arrays['fine_precision'][0])}")
        self._precision = np.promote_types(self._precision, precision)

    def tally(self) -> Tally:
        """Make a tally of all that was counted."""
        forgotten, recalled, high, low = self._sums[:, self._held()].astype(np.float64)
        total = (high + low / self._LOW) / self._HIGH
        return from_sums(forgotten, recalled, total, self._precision)

    def _held(self) -> IntArray:
        """Cells that hold reviews."""
        return np.flatnonzero(self._sums[0] | self._sums[1])


_FINE_SUMS = ("fine_forgotten", "fine_recalled", "fine_high", "fine_low")
