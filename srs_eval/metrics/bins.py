"""RMSE(bins), the community's calibration metric, in its new form and in its old form.

The new form groups reviews by interval, number of reviews and number of lapses, rounded
on geometric scales. Two sets of scales were published: that of the fsrs-optimizer code,
which every published number uses, and that of the wiki page that describes the metric.
No form may rank models alone: a useless predictor that watches the bins scores near 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from srs_eval.errors import ScoreError
from srs_eval.metrics.validate import as_numbers, paired
from srs_eval.nouns import Better, BoolArray, FloatArray, IntArray, Predictions

# Beyond any interval in days or number of reviews; elapsed days are at least this short.
LARGEST = 1e9
SHORTEST_INTERVAL = 1e-6
LOG_BINS = 20


@dataclass(frozen=True, slots=True)
class Scale:
    """A geometric scale: values between two powers of `base` are rounded to one value.

    Attributes
    ----------
    factor, base : float
        A value in [base**k, base**(k + 1)) becomes round(factor * base**k, decimals).
    decimals : int
        Decimals kept; different powers may become equal, and then share their bin.
    """

    factor: float
    base: float
    decimals: int = 0

    def rounded(self, values: ArrayLike) -> FloatArray:
        """Round values above 0 on this scale."""
        starts, rounded = self._table()
        return rounded[np.searchsorted(starts, np.asarray(values), side="right") - 1]

    def codes(self, values: ArrayLike) -> IntArray:
        """Give each rounded value a number from 0, equal ones the same."""
        starts, rounded = self._table()
        _, code = np.unique(rounded, return_inverse=True)
        return code[np.searchsorted(starts, np.asarray(values), side="right") - 1]

    def _table(self) -> tuple[FloatArray, FloatArray]:
        """Where each power of the base starts, and what it is rounded to."""
        lowest = math.floor(math.log(SHORTEST_INTERVAL, self.base))
        highest = math.ceil(math.log(LARGEST, self.base))
        powers = [self.base**exponent for exponent in range(lowest, highest + 1)]
        rounded = [round(self.factor * power, self.decimals) for power in powers]
        return np.array(powers), np.array(rounded)


@dataclass(frozen=True, slots=True)
class BinScales:
    """How RMSE(bins) rounds the three facts it groups reviews by."""

    interval: Scale
    reviews: Scale
    lapses: Scale


FSRS_OPTIMIZER = BinScales(Scale(2.48, 3.62, 2), Scale(1.99, 1.89), Scale(1.65, 1.73))
WIKI_2024 = BinScales(Scale(2.48, 2.57, 2), Scale(1.52, 1.58), Scale(1.4, 1.48))


def rmse_bins(
    p: ArrayLike,
    recalled: ArrayLike,
    elapsed_days: ArrayLike,
    nth_review: ArrayLike,
    lapses: ArrayLike,
    *,
    scales: BinScales = FSRS_OPTIMIZER,
) -> float:
    """Root mean square gap between mean prediction and share of recalls, over bins.

    Parameters
    ----------
    p : float [n], in [0, 1]
        Predicted probability of recall.
    recalled : bool [n]
        Outcome.
    elapsed_days : float [n], at least 0
        Days since the card's previous review.
    nth_review : int [n], at least 1
        1 + reviews of the card on a later day than the one before, this one included.
    lapses : int [n], at least 0
        Earlier Agains of the card given at least a day after the review before them.
    scales : BinScales
        Which published constants to round with.

    Returns
    -------
    float
        In [0, 1]; lower is better. NaN if n is 0.

    Raises
    ------
    ScoreError
        If the facts do not fit the predictions.

    Examples
    --------
    >>> round(rmse_bins([0.9, 0.8, 0.7], [1, 1, 0], [1, 2, 9], [2, 3, 3], [0, 0, 1]), 6)
    0.422295
    """
    probability, outcome = paired(p, recalled)
    interval = _fact("elapsed_days", elapsed_days, probability, lowest=0)
    nth = _fact("nth_review", nth_review, probability, lowest=1)
    failed = _fact("lapses", lapses, probability, lowest=0)
    bins = _merged(
        scales.interval.codes(np.maximum(interval, SHORTEST_INTERVAL)),
        scales.reviews.codes(nth),
        np.where(failed > 0, 1 + scales.lapses.codes(np.maximum(failed, 1)), 0),
    )
    return _rmse(probability, outcome, bins)


def rmse_bins_by_p(p: ArrayLike, recalled: ArrayLike) -> float:
    """RMSE(bins) in its old form: 20 bins of the prediction itself, finer towards 1.

    Bin b holds predictions with floor(21**p) = b + 1, and 1 falls in the last bin. In
    [0, 1], lower is better; the base rate scores 0. NaN if n is 0.

    Examples
    --------
    >>> round(rmse_bins_by_p([0.95, 0.9, 0.3], [True, False, False]), 6)
    0.548483
    """
    probability, outcome = paired(p, recalled)
    return _rmse(probability, outcome, log_bins(probability))


def log_bins(p: ArrayLike) -> IntArray:
    """Which of the 20 bins of the old RMSE(bins) each prediction falls into."""
    powers = np.exp(math.log(LOG_BINS + 1) * np.asarray(p, np.float64))
    return np.minimum(powers.astype(np.int64) - 1, LOG_BINS - 1)


def _fact(name: str, values: ArrayLike, p: FloatArray, *, lowest: int) -> NDArray[Any]:
    """Take a column of facts, or refuse it."""
    column = as_numbers(name, values)
    if column.shape != p.shape:
        raise ScoreError(f"{name} has shape {column.shape}, but p has {p.shape}")
    if column.size and not column.min() >= lowest:
        raise ScoreError(f"{name} must be at least {lowest} everywhere, found {column.min()}")
    return column


def _merged(*codes: IntArray) -> IntArray:
    """Give each combination of some codes a number."""
    merged = np.zeros_like(codes[0])
    for code in codes:
        merged *= int(code.max(initial=0)) + 1
        merged += code
    return merged


def _rmse(p: FloatArray, recalled: BoolArray, bins: IntArray) -> float:
    """Root of the mean over reviews of the squared gap of their bin."""
    if not len(p):
        return math.nan
    size = np.bincount(bins)
    gap = np.bincount(bins, p.astype(np.float64, copy=False) - recalled)
    held = size > 0
    return math.sqrt(float((gap[held] ** 2 / size[held]).sum()) / len(p))


def _on_predictions(predictions: Predictions, scales: BinScales) -> float:
    """RMSE(bins) of predictions; NaN where they lack the facts it needs."""
    elapsed_days, nth_review = predictions.elapsed_days, predictions.nth_review
    if elapsed_days is None or nth_review is None or predictions.lapses is None:
        return math.nan
    return rmse_bins(
        predictions.p,
        predictions.recalled,
        elapsed_days,
        nth_review,
        predictions.lapses,
        scales=scales,
    )


@dataclass(frozen=True, slots=True)
class RmseBins:
    """RMSE(bins) as every published number has it: see `rmse_bins`."""

    name: ClassVar[str] = "rmse_bins"
    better: ClassVar[Better] = "lower"
    section: ClassVar[str] = "calibration"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __call__(self, predictions: Predictions) -> float:
        """Score the predictions."""
        return _on_predictions(predictions, FSRS_OPTIMIZER)


@dataclass(frozen=True, slots=True)
class RmseBinsWiki:
    """RMSE(bins) with the constants of the wiki page: see `rmse_bins`."""

    name: ClassVar[str] = "rmse_bins_wiki"
    better: ClassVar[Better] = "lower"
    section: ClassVar[str] = "calibration"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __call__(self, predictions: Predictions) -> float:
        """Score the predictions."""
        return _on_predictions(predictions, WIKI_2024)


@dataclass(frozen=True, slots=True)
class RmseBinsByP:
    """RMSE(bins) in its old form: see `rmse_bins_by_p`."""

    name: ClassVar[str] = "rmse_bins_by_p"
    better: ClassVar[Better] = "lower"
    section: ClassVar[str] = "calibration"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __call__(self, predictions: Predictions) -> float:
        """Score the predictions."""
        return rmse_bins_by_p(predictions.p, predictions.recalled)
