"""The bins of RMSE(bins), the community's calibration metric.

Reviews are grouped by interval, number of reviews and number of lapses, rounded on geometric
scales. Two sets of scales were published: that of the fsrs-optimizer code, which every published
number uses, and that of the wiki page that describes the metric.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from srs_eval.data.reviews import FloatArray, IntArray
from srs_eval.metrics.predictions import Predictions, select

# Beyond any interval in days or number of reviews; elapsed days are at least this short.
LARGEST = 1e9
SHORTEST_INTERVAL = 1e-6
LOOKED_UP = 2**16
BLOCK = 2**17  # Reviews whose bins are looked up at a time


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
        starts, code, small = _tables(self)
        # Most are small whole numbers: looking them up is ten times faster than searching.
        if values.size and values.max() < LOOKED_UP:
            whole = values.astype(np.int32, copy=False) if values.dtype.kind == "f" else values
            if whole is values or (whole == values).all():
                return np.asarray(small[whole])
        after = np.searchsorted(starts, np.maximum(values, SHORTEST_INTERVAL), "right")
        return np.asarray(code[after - 1])

    @property
    def count(self) -> int:
        """Number of different rounded values."""
        return int(_tables(self)[1].max()) + 1


@lru_cache
def _tables(scale: Scale) -> tuple[FloatArray, IntArray, IntArray]:
    """Where each power of the base starts, the rank of what it is rounded to, and small codes.

    Small codes are those of the whole numbers below `LOOKED_UP`.
    """
    lowest = math.floor(math.log(SHORTEST_INTERVAL, scale.base))
    highest = math.ceil(math.log(LARGEST, scale.base))
    powers = [scale.base**exponent for exponent in range(lowest, highest + 1)]
    rounded = [round(scale.factor * power, scale.decimals) for power in powers]
    starts, code = np.array(powers), np.unique(rounded, return_inverse=True)[1]
    whole = np.maximum(np.arange(LOOKED_UP), SHORTEST_INTERVAL)
    return starts, code, code[np.searchsorted(starts, whole, "right") - 1]


@dataclass(frozen=True, slots=True)
class Bins:
    """Bins of reviews that are alike in interval, number of reviews and lapses."""

    interval: Scale
    reviews: Scale
    lapses: Scale

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of different intervals, reviews and lapses; no lapse is a value of its own."""
        return self.interval.count, self.reviews.count, self.lapses.count

    def columns(self, predictions: Predictions) -> tuple[IntArray, Iterable[FloatArray]]:
        """Bin of each review [n]; and 1, prediction minus outcome, and variance [3, n].

        Where a fact is not known, these are NaN, in the first bin.
        """
        p = predictions.p.astype(np.float64, copy=False)
        facts = predictions.elapsed_days, predictions.nth_review, predictions.lapses
        known = [fact for fact in facts if fact is not None]
        if len(known) < len(facts):
            return np.zeros(len(p), np.int64), np.full((3, len(p)), math.nan)
        scales = self.interval, self.reviews, self.lapses
        codes = tuple(scale.codes(fact) for scale, fact in zip(scales, known, strict=True))
        values = np.ones(len(p)), p - predictions.recalled, p * (1 - p)
        return np.asarray(np.ravel_multi_index(codes, self.shape)), values

    def sums(self, predictions: Predictions, *, every: bool = False) -> FloatArray:
        """Add up reviews, residuals and variances of bins that hold reviews, or of every bin."""
        cells = math.prod(self.shape) if every or len(predictions) > BLOCK else 0
        sums = np.zeros((cells or 1, 3))
        for begin in range(0, len(predictions), BLOCK):
            cell, columns = self.columns(select(predictions, slice(begin, begin + BLOCK)))
            sums = sums + np.stack([np.bincount(cell, each, cells) for each in columns], axis=1)
        return sums if every else sums[sums[:, 0] != 0]


FSRS_OPTIMIZER = Bins(Scale(2.48, 3.62, 2), Scale(1.99, 1.89), Scale(1.65, 1.73))
WIKI_2024 = Bins(Scale(2.48, 2.57, 2), Scale(1.52, 1.58), Scale(1.4, 1.48))


def mean_square(sums: FloatArray) -> float:
    """Mean over reviews of the squared gap between mean prediction and recall of their bin."""
    return float((sums[:, 1] ** 2 / sums[:, 0]).sum() / sums[:, 0].sum())


def mean_variance(sums: FloatArray) -> float:
    """Mean square that is expected if every prediction is the true probability."""
    return float((sums[:, 2] / sums[:, 0]).sum() / sums[:, 0].sum())
