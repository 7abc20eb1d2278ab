"""RMSE(bins), the community's calibration metric, in its new form and in its old form.

The new form groups reviews by interval, number of reviews and number of lapses, rounded
on geometric scales. Two sets of scales were published: that of the fsrs-optimizer code,
which every published number uses, and that of the wiki page that describes the metric.
No form may rank models alone: a useless predictor that watches the bins scores near 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from srs_eval.metrics.sketch import Sketch, SketchMetric
from srs_eval.metrics.sums import ResidualSums, Sums
from srs_eval.nouns import BoolArray, FloatArray, IntArray, Predictions

# Beyond any interval in days or number of reviews; elapsed days are at least this short.
LARGEST = 1e9
SHORTEST_INTERVAL = 1e-6
LOOKED_UP = 2**16
LOG_BINS = 20


@dataclass(frozen=True, slots=True)
class Scale:
    """A geometric scale: values between two powers of `base` are rounded to one value."""

    # A value in [base**k, base**(k + 1)) becomes round(factor * base**k, decimals)
    factor: float
    base: float
    decimals: int = 0  # Decimals kept; different powers may become equal, and then share their bin

    def rounded(self, values: ArrayLike) -> FloatArray:
        """Round values above 0 on this scale."""
        starts, rounded = self._table()
        return rounded[np.searchsorted(starts, np.asarray(values), side="right") - 1]

    def codes(self, values: ArrayLike) -> IntArray:
        """Return the rank of each rounded value among the distinct rounded values."""
        given = np.asarray(values)
        # Most are small whole numbers: looking them up is ten times faster than searching.
        if given.size and given.max() < LOOKED_UP:
            whole = given.astype(np.int32 if given.dtype.kind == "f" else given.dtype, copy=False)
            if whole is given or (given == whole).all():
                small: IntArray = _small_codes(self)[whole]
                return small
        starts, code = _code_table(self)
        after = np.searchsorted(starts, np.maximum(given, SHORTEST_INTERVAL), side="right")
        found: IntArray = code[after - 1]
        return found

    @property
    def count(self) -> int:
        """Number of different rounded values."""
        return int(_code_table(self)[1].max()) + 1

    def _table(self) -> tuple[FloatArray, FloatArray]:
        """Where each power of the base starts, and what it is rounded to."""
        lowest = math.floor(math.log(SHORTEST_INTERVAL, self.base))
        highest = math.ceil(math.log(LARGEST, self.base))
        powers = [self.base**exponent for exponent in range(lowest, highest + 1)]
        rounded = [round(self.factor * power, self.decimals) for power in powers]
        return np.array(powers), np.array(rounded)


@lru_cache
def _code_table(scale: Scale) -> tuple[FloatArray, IntArray]:
    """Where each power of the base starts, and the number of what it is rounded to."""
    starts, rounded = scale._table()
    return starts, np.unique(rounded, return_inverse=True)[1]


@lru_cache
def _small_codes(scale: Scale) -> IntArray:
    """Return the codes of the whole numbers below `LOOKED_UP`."""
    starts, code = _code_table(scale)
    whole = np.maximum(np.arange(LOOKED_UP), SHORTEST_INTERVAL)
    return code[np.searchsorted(starts, whole, side="right") - 1]


@dataclass(frozen=True, slots=True)
class BinScales:
    """How RMSE(bins) rounds the three facts it groups reviews by."""

    interval: Scale
    reviews: Scale
    lapses: Scale


FSRS_OPTIMIZER = BinScales(Scale(2.48, 3.62, 2), Scale(1.99, 1.89), Scale(1.65, 1.73))
WIKI_2024 = BinScales(Scale(2.48, 2.57, 2), Scale(1.52, 1.58), Scale(1.4, 1.48))


def log_bins(p: ArrayLike) -> IntArray:
    """Which of the 20 bins of the old RMSE(bins) each prediction falls into."""
    powers = np.exp(math.log(LOG_BINS + 1) * np.asarray(p, np.float64))
    return np.minimum(powers.astype(np.int64) - 1, LOG_BINS - 1)


@dataclass(frozen=True, slots=True)
class FactSums:
    """Adds up reviews that are alike in interval, number of reviews and lapses, by some scales."""

    scales: BinScales = FSRS_OPTIMIZER

    @property
    def cells(self) -> int:
        scales = self.scales
        return scales.interval.count * scales.reviews.count * (scales.lapses.count + 1)

    def cell(self, predictions: Predictions) -> IntArray | None:
        """Find the bin of each review; there is one bin where the facts are not known."""
        facts = _facts(predictions)
        if facts is None:
            return None
        elapsed_days, nth_review, lapses = facts
        cell = self.scales.interval.codes(elapsed_days) * self.scales.reviews.count
        cell += self.scales.reviews.codes(nth_review)
        cell *= self.scales.lapses.count + 1
        cell += (1 + self.scales.lapses.codes(lapses)) * (lapses > 0)
        return cell

    def values(self, predictions: Predictions) -> Sequence[FloatArray | BoolArray]:
        """Return 1, prediction minus outcome, and the variance of the outcome."""
        p = predictions.p.astype(np.float64, copy=False)
        if _facts(predictions) is None:
            return (np.broadcast_to(math.nan, len(p)),) * 3
        return np.ones(len(p), np.bool_), p - predictions.recalled, p * (1 - p)


# The same value for several metrics, which is found by identity then.
_FACTS = FactSums()


@dataclass(frozen=True, slots=True)
class LogBinSums(ResidualSums):
    """Adds up reviews in the 20 bins of the old RMSE(bins)."""

    cells: ClassVar[int] = LOG_BINS

    def cell(self, predictions: Predictions) -> IntArray:
        return log_bins(predictions.p)


def _facts(predictions: Predictions) -> tuple[FloatArray, IntArray, IntArray] | None:
    """Return the columns RMSE(bins) groups reviews by; None if one is unknown."""
    elapsed_days, nth_review = predictions.elapsed_days, predictions.nth_review
    if elapsed_days is None or nth_review is None or predictions.lapses is None:
        return None
    return elapsed_days, nth_review, predictions.lapses


def mean_square(totals: FloatArray) -> float:
    """Mean over reviews of the squared gap of their bin."""
    held = totals[totals[:, 0] != 0]  # resamples may leave bins without reviews
    return float((held[:, 1] ** 2 / held[:, 0]).sum() / held[:, 0].sum())


def mean_variance(totals: FloatArray) -> float:
    """Compute the mean square expected if every prediction is the true probability."""
    held = totals[totals[:, 0] != 0]
    return float((held[:, 2] / held[:, 0]).sum() / held[:, 0].sum())


class RmseBins(SketchMetric):
    """Root mean square gap between mean prediction and share of recalls, over bins.

    As every published number has it. Lower is better. NaN where the predictions lack a fact that
    reviews are grouped by: days since the card's previous review; 1 + reviews of the card on a
    later day than the one before, this one included; and earlier Agains of the card given at
    least a day after the review before them.
    """

    name, better, section = "rmse_bins", "lower", "calibration"
    bounds = (0.0, 1.0)
    needs: ClassVar[tuple[Sums, ...]] = (_FACTS,)

    def of(self, sketch: Sketch) -> float:
        return math.sqrt(mean_square(sketch[self.needs[0]]))


class RmseBinsWiki(RmseBins):
    """RMSE(bins) with the constants of the wiki page: see `RmseBins`."""

    name = "rmse_bins_wiki"
    needs = (FactSums(WIKI_2024),)


class RmseBinsFloor(SketchMetric):
    """Expected RMSE(bins) if every prediction is the true probability.

    The root of the expected mean square. A model below it is not better than perfect: its
    predictions exploit the bins.
    """

    name, better, section = "rmse_bins_floor", "neither", "calibration"
    has_interval = False
    bounds = (0.0, 1.0)
    needs = (_FACTS,)

    def of(self, sketch: Sketch) -> float:
        return math.sqrt(mean_variance(sketch[_FACTS]))


class RmseBinsByP(RmseBins):
    """RMSE(bins) in its old form: 20 bins of the prediction itself, finer towards 1.

    Bin b holds predictions with floor(21**p) = b + 1, and 1 falls in the last bin. Lower is
    better; the base rate scores 0.

    Examples
    --------
    >>> round(RmseBinsByP().of_outcomes([0.95, 0.9, 0.3], [True, False, False]), 6)
    0.548483
    """

    name = "rmse_bins_by_p"
    needs = (LogBinSums(),)
