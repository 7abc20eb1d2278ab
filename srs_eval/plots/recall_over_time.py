"""Recall over elapsed days, observed and predicted: sums that add up over users."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from srs_eval.data.reviews import FloatArray, IntArray
from srs_eval.metrics.predictions import Predictions

# Whole days below 23 have cells of their own; later ones share those of 4 % in width.
CELLS_PER_DOUBLING = 16
# Times from below a second to 358 years; others are clipped.
DOUBLINGS = 17
CELLS = 1 + 2 * DOUBLINGS * CELLS_PER_DOUBLING
BINS = 14
FEWEST = 20


def elapsed_sums(predictions: Predictions) -> FloatArray:
    """Add up reviews after about equally long intervals: [CELLS, 5].

    The first cell is for reviews on the day of the one before, and for those whose interval is not
    known. Columns: reviews on a later day, how many of them were recalled, the sums of their
    predictions and of the logarithms of their elapsed days; the other reviews.
    """
    days = predictions.elapsed_days
    days = np.zeros(len(predictions)) if days is None else days
    later = days > 0
    log_days = np.log(days, out=np.zeros(len(days)), where=later)
    columns = later, predictions.recalled & later, predictions.p * later, log_days, ~later
    cell = elapsed_cell(days)
    return np.stack([np.bincount(cell, column, CELLS) for column in columns], axis=1)


def elapsed_cell(days: FloatArray) -> IntArray:
    """Find the cell of each review by its elapsed days [n]."""
    later = days > 0
    # Powers of two have exact logarithms, so whole days begin cells where they can.
    octave = np.log2(days, out=np.zeros(len(days)), where=later)
    place = np.floor((octave + DOUBLINGS) * CELLS_PER_DOUBLING).astype(np.int64)
    return np.where(later, 1 + np.clip(place, 0, CELLS - 2), 0)


@dataclass(frozen=True, slots=True)
class RecallOverTime:
    """Recall in bins of elapsed days."""

    days: FloatArray  # [bins], increasing: Geometric mean of the elapsed days in each bin
    # [bins]: Reviews, and how many of them were recalled
    n: FloatArray
    recalled: FloatArray
    predicted: FloatArray  # [bins]: Mean prediction of the same reviews
    same_day: float  # Reviews that are in no bin: on the day of the one before

    @property
    def observed(self) -> FloatArray:
        """Share of the reviews in each bin that were recalled, float64 [bins]."""
        share: FloatArray = self.recalled / self.n
        return share


def recall_of(totals: FloatArray, *, bins: int = BINS) -> RecallOverTime:
    """Join cells to bins of about equally many reviews; no cell is split.

    `totals` are those of `elapsed_sums`, in order of the cells. There are at most `bins` bins, and
    no more than lets each hold about 20 reviews.
    """
    held = totals[totals[:, 0] > 0]
    number = float(held[:, 0].sum())
    wanted = int(np.clip(number // FEWEST, 1, bins))
    # A cell goes where the middle of its reviews lies.
    middle = np.cumsum(held[:, 0]) - held[:, 0] / 2
    which = np.minimum((middle / max(number, 1.0) * wanted).astype(np.int64), wanted - 1)
    first = np.flatnonzero(np.diff(which, prepend=-1))
    n, recalled, predicted, logarithm, _ = (
        np.add.reduceat(held, first, axis=0).T if len(held) else np.zeros((5, 0))
    )
    return RecallOverTime(
        np.exp(logarithm / n), n, recalled, predicted / n, float(totals[:, 4].sum())
    )
