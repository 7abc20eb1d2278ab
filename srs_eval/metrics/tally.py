"""Distinct predictions in increasing order, with counts of both outcomes.

One sort makes a tally, and what depends on predictions and outcomes alone is computed from
it: the area under the ROC curve, isotonic and local regressions, SmoothECE, calibration curves.
A tally may also stand for many reviews in little memory, when predictions are counted in
cells (see `PredictionCells`), or for resampled reviews, when counts are weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from srs_eval.nouns import BoolArray, FloatArray

Precision = np.dtype[np.floating[Any]]
PIECE = 2**15
COMPACT = 2**16
ROUNDING = 1e-12
DOUBLE: Precision = np.dtype(np.float64)


@dataclass(frozen=True, eq=False)
class Tally:
    """Unique predictions with outcome counts."""

    # [m], increasing, in [0, 1]: Distinct predictions, or the mean prediction of each cell
    p: FloatArray
    # [m], at least 0: How many reviews with this prediction were forgotten, and how many recalled.
    # Never both 0
    forgotten: FloatArray
    recalled: FloatArray
    precision: Precision = DOUBLE  # Precision of the predictions; thresholds are rounded to it

    def __len__(self) -> int:
        return len(self.p)

    @cached_property
    def count(self) -> FloatArray:
        """Reviews with each prediction, float64 [m]."""
        return self.forgotten + self.recalled

    @cached_property
    def residual(self) -> FloatArray:
        """Sum of prediction minus outcome over the reviews with each prediction, float64 [m]."""
        total: FloatArray = self.p * self.count
        total -= self.recalled
        return total

    @cached_property
    def compact(self) -> Tally:
        """The tally with neighbouring predictions joined in 2**16 cells."""
        return self.at_most(COMPACT)

    @property
    def n_forgotten(self) -> float:
        """Forgotten reviews in all."""
        return float(self.forgotten.sum())

    @property
    def n_recalled(self) -> float:
        """Recalled reviews in all."""
        return float(self.recalled.sum())

    @property
    def n(self) -> float:
        """Reviews in all."""
        return self.n_forgotten + self.n_recalled

    @property
    def has_both_outcomes(self) -> bool:
        """Whether anything was recalled and anything forgotten."""
        return bool(self.forgotten.any() and self.recalled.any())

    def at_most(self, size: int) -> Tally:
        """Join neighbouring predictions until there are at most `size`.

        They are joined in `size` equal cells of [0, 1] and their means kept, which moves no
        prediction by more than 1 / `size`.
        """
        if len(self) <= size:
            return self
        forgotten, recalled, total = np.zeros((3, size))
        for begin in range(0, len(self), PIECE):  # pieces that stay in the cache
            piece = slice(begin, begin + PIECE)
            p = self.p[piece]
            cell = np.minimum((p * size).astype(np.int64), size - 1)
            cells = slice(cell[0], cell[-1] + 1)
            cell -= cell[0]
            forgotten[cells] += np.bincount(cell, self.forgotten[piece])
            recalled[cells] += np.bincount(cell, self.recalled[piece])
            total[cells] += np.bincount(cell, p * (self.forgotten[piece] + self.recalled[piece]))
        return from_sums(forgotten, recalled, total, self.precision)

    def first_at_least(self, threshold: float) -> int:
        """Find the first prediction [0, m] that is at least a threshold, rounded as they are.

        Means of equal predictions may be a little below them, and count as they do.
        """
        rounded = float(self.precision.type(threshold))
        return int(np.searchsorted(self.p, rounded - ROUNDING))


def from_sums(
    forgotten: FloatArray, recalled: FloatArray, total: FloatArray, precision: Precision = DOUBLE
) -> Tally:
    """Build a tally from increasing cells [m]: outcome counts and sums of predictions."""
    held = (forgotten + recalled) != 0
    forgotten, recalled, total = forgotten[held], recalled[held], total[held]
    # Adding up rounds: a mean must not leave [0, 1], nor fall behind the cell before.
    mean = np.clip(total / (forgotten + recalled), 0, 1)
    return Tally(np.maximum.accumulate(mean), forgotten, recalled, precision)


def tally(p: FloatArray, recalled: BoolArray) -> Tally:
    """Sort predictions and count their outcomes, exactly and in any precision.

    >>> import numpy as np
    >>> counted = tally(np.array([0.9, 0.5, 0.9]), np.array([True, False, False]))
    >>> counted.p.tolist(), counted.forgotten.tolist(), counted.recalled.tolist()
    ([0.5, 0.9], [1.0, 1.0], [0.0, 1.0])
    """
    # Doubles from 0 to 1 are ordered as their bits are; the outcome rides along as the last
    # bit, so that one sort of integers does. Adding 0 makes an ordinary zero of -0.
    exact = p.astype(np.float64)
    exact += 0.0
    keys = exact.view(np.int64)
    keys <<= 1
    keys |= recalled
    keys.sort()
    if not len(keys):
        return Tally(np.empty(0), np.empty(0), np.empty(0), p.dtype)
    last = np.flatnonzero(np.bitwise_xor(keys[1:], keys[:-1]) > 1)
    kept = (keys & 1).astype(np.float64)
    keys >>= 1
    if len(last) + 1 == len(keys):
        return Tally(keys.view(np.float64), 1 - kept, kept, p.dtype)
    first = np.append(0, last + 1)
    hits = np.add.reduceat(kept, first)
    count = np.diff(first, append=len(keys))
    return Tally(keys[first].view(np.float64), count - hits, hits, p.dtype)
