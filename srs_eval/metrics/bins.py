"""The bins of RMSE(bins), the community's calibration metric.

Reviews are grouped by interval, number of reviews and number of lapses, rounded on geometric
scales. Two sets of scales were published: that of the fsrs-optimizer code, which every published
number uses, and that of the wiki page that describes the metric.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from srs_eval.data.reviews import FloatArray, IntArray
from srs_eval.metrics.predictions import Predictions

# Beyond any interval in days or number of reviews; elapsed days are at least this short.
LARGEST = 1e9
SHORTEST_INTERVAL = 1e-6
LOOKED_UP = 2**16


@dataclass(frozen=True, slots=True)
class Scale:
    """A geometric scale: values between two powers of `base` are rounded to one value."""

    # A value in [base**k, base**(k + 1)) becomes round(factor * base**k, decimals)
    factor: float
    base: float
    decimals: int = 0  # Decimals kept; different powers may become equal, and then share their bin

    def codes(self, values: ArrayLike) -> IntArray:
        """Return the rank of each rounded value among the distinct rounded values."""
        values = np.asarray(values)
        # Most are small whole numbers: looking them up is ten times faster than searching.
        if values.size and values.max() < LOOKED_UP:
            whole = values.astype(
                np.int32 if values.dtype.kind == "f" else values.dtype, copy=False
            )
            if whole is values or (whole == values).all():
                return np.asarray(_small_codes(self)[whole])
        return _searched(self, values)

    @property
    def count(self) -> int:
        """Number of different rounded values."""
        return int(_code_table(self)[1].max()) + 1


@lru_cache
def _code_table(scale: Scale) -> tuple[FloatArray, IntArray]:
    """Where each power of the base starts, and the rank of what it is rounded to."""
    lowest = math.floor(math.log(SHORTEST_INTERVAL, scale.base))
    highest = math.ceil(math.log(LARGEST, scale.base))
    powers = [scale.base**exponent for exponent in range(lowest, highest + 1)]
    rounded = [round(scale.factor * power, scale.decimals) for power in powers]
    return np.array(powers), np.unique(rounded, return_inverse=True)[1]


def _searched(scale: Scale, values: FloatArray | IntArray) -> IntArray:
    starts, code = _code_table(scale)
    after = np.searchsorted(starts, np.maximum(values, SHORTEST_INTERVAL), side="right")
    return np.asarray(code[after - 1])


@lru_cache
def _small_codes(scale: Scale) -> IntArray:
    """Return the codes of the whole numbers below `LOOKED_UP`."""
    return _searched(scale, np.arange(LOOKED_UP))


@dataclass(frozen=True, slots=True)
class Bins:
    """Bins of reviews that are alike in interval, number of reviews and lapses."""

    interval: Scale
    reviews: Scale
    lapses: Scale

    @property
    def cells(self) -> int:
        """Number of bins."""
        return self.interval.count * self.reviews.count * (self.lapses.count + 1)

    def cell(self, predictions: Predictions) -> IntArray:
        """Bin of each review; the first one for all where a fact is not known."""
        elapsed_days, nth_review = predictions.elapsed_days, predictions.nth_review
        lapses = predictions.lapses
        if elapsed_days is None or nth_review is None or lapses is None:
            return np.zeros(len(predictions), np.int64)
        cell = self.interval.codes(elapsed_days) * self.reviews.count
        cell += self.reviews.codes(nth_review)
        cell *= self.lapses.count + 1
        cell += (1 + self.lapses.codes(lapses)) * (lapses > 0)
        return cell


FSRS_OPTIMIZER = Bins(Scale(2.48, 3.62, 2), Scale(1.99, 1.89), Scale(1.65, 1.73))
WIKI_2024 = Bins(Scale(2.48, 2.57, 2), Scale(1.52, 1.58), Scale(1.4, 1.48))


def bin_columns(predictions: Predictions) -> Sequence[FloatArray]:
    """1, prediction minus outcome, and variance of the outcome [n]; NaN if facts are unknown."""
    p = predictions.p.astype(np.float64, copy=False)
    if any(getattr(predictions, fact) is None for fact in ("elapsed_days", "nth_review", "lapses")):
        return (np.full(len(p), math.nan),) * 3
    return np.ones(len(p)), p - predictions.recalled, p * (1 - p)


def bin_sums(bins: Bins, predictions: Predictions | None) -> FloatArray:
    """Add up `bin_columns` in the bins that hold reviews [used, 3], in order of the bins."""
    if predictions is None:
        return np.full((1, 3), math.nan)
    cell = bins.cell(predictions)
    used = np.flatnonzero(np.bincount(cell))
    return np.stack([np.bincount(cell, each)[used] for each in bin_columns(predictions)], axis=1)


def every_bin(bins: Bins, predictions: Predictions) -> FloatArray:
    """Add up `bin_columns` in all bins [cells, 3]."""
    cell = bins.cell(predictions)
    columns = bin_columns(predictions)
    return np.stack([np.bincount(cell, column, bins.cells) for column in columns], axis=1)


def mean_square(sums: FloatArray) -> float:
    """Mean over reviews of the squared gap between mean prediction and recall of their bin."""
    return float((sums[:, 1] ** 2 / sums[:, 0]).sum() / sums[:, 0].sum())


def mean_variance(sums: FloatArray) -> float:
    """Mean square that is expected if every prediction is the true probability."""
    return float((sums[:, 2] / sums[:, 0]).sum() / sums[:, 0].sum())
