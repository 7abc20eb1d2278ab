"""Calibration without smoothing: the mean bias, and the error in equal bins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from srs_eval.errors import ConfigError
from srs_eval.metrics.validate import paired
from srs_eval.nouns import Better, FloatArray, Predictions

DEFAULT_BINS = 10


def mbe(p: ArrayLike, recalled: ArrayLike) -> float:
    """Mean bias error: mean prediction minus share of recalls, in [-1, 1].

    Best at 0; above 0 the predictions are too high. NaN if n is 0.

    Examples
    --------
    >>> round(mbe([0.9, 0.8], [True, False]), 6)
    0.35
    """
    probability, outcome = paired(p, recalled)
    if not probability.size:
        return math.nan
    return float((probability.astype(np.float64, copy=False) - outcome).mean())


def ece(p: ArrayLike, recalled: ArrayLike, *, bins: int = DEFAULT_BINS) -> float:
    """Mean calibration error in equally wide bins of the prediction.

    Mean over reviews of the gap between mean prediction and share of recalls in their
    bin, in [0, 1]; lower is better. It depends on the bins, so prefer SmoothECE.

    Parameters
    ----------
    p : float [n], in [0, 1]
        Predicted probability of recall.
    recalled : bool [n]
        Outcome.
    bins : int
        Bin b holds predictions from b / bins up to, not including, (b + 1) / bins; the
        last one holds 1 too.

    Returns
    -------
    float
        NaN if n is 0.

    References
    ----------
    Naeini, Cooper and Hauskrecht (2015), doi:10.1609/aaai.v29i1.9602.

    Examples
    --------
    >>> round(ece([0.92, 0.98, 0.15], [True, False, False]), 6)
    0.35
    """
    probability, outcome = paired(p, recalled)
    if not probability.size:
        return math.nan
    exact = probability.astype(np.float64, copy=False)
    number = np.minimum((exact * bins).astype(np.int64), bins - 1)
    gaps = np.bincount(number, exact - outcome)
    return float(np.abs(gaps).sum() / len(exact))


@dataclass(frozen=True, slots=True)
class MeanBias:
    """Mean bias error: see `mbe`."""

    name: ClassVar[str] = "mbe"
    better: ClassVar[Better] = "zero"
    section: ClassVar[str] = "calibration"
    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    def __call__(self, predictions: Predictions) -> float:
        """Score the predictions."""
        return mbe(predictions.p, predictions.recalled)

    def per_review(self, predictions: Predictions) -> FloatArray:
        """Prediction less outcome of each review [n]."""
        p, recalled = paired(predictions.p, predictions.recalled)
        errors: FloatArray = p - recalled
        return errors


@dataclass(frozen=True, slots=True)
class Ece:
    """Expected calibration error in equally wide bins: see `ece`.

    Parameters
    ----------
    bins : int
        Number of bins; part of the name unless it is 10.
    """

    bins: int = DEFAULT_BINS
    better: ClassVar[Better] = "lower"
    section: ClassVar[str] = "calibration"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __post_init__(self) -> None:
        """Refuse less than one bin."""
        if self.bins < 1:
            raise ConfigError(f"ece needs at least 1 bin, not {self.bins}")

    @property
    def name(self) -> str:
        """``ece``, with the number of bins where it is unusual."""
        return "ece" if self.bins == DEFAULT_BINS else f"ece_{self.bins}"

    def __call__(self, predictions: Predictions) -> float:
        """Score the predictions."""
        return ece(predictions.p, predictions.recalled, bins=self.bins)
