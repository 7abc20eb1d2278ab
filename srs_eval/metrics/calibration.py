"""Calibration without smoothing: the mean bias, and the error in equal bins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from srs_eval.errors import ConfigError
from srs_eval.metrics.proper import SCORES, score_totals
from srs_eval.metrics.sketch import Sketch, SketchMetric
from srs_eval.metrics.sums import ResidualSums, Sums
from srs_eval.metrics.validate import paired
from srs_eval.nouns import FloatArray, IntArray, Predictions

DEFAULT_BINS = 10


class MeanBias(SketchMetric):
    """Mean bias error: mean prediction minus share of recalls.

    Best at 0; above 0 the predictions are too high.

    Examples
    --------
    >>> round(MeanBias().of_outcomes([0.9, 0.8], [True, False]), 6)
    0.35
    """

    name, better, section = "mbe", "zero", "calibration"
    bounds = (-1.0, 1.0)
    needs = (SCORES,)

    def of(self, sketch: Sketch) -> float:
        totals = score_totals(sketch)
        return totals.residual / totals.n

    def per_review(self, predictions: Predictions) -> FloatArray:
        """Prediction less outcome of each review [n]."""
        p, recalled = paired(predictions.p, predictions.recalled)
        errors: FloatArray = p - recalled
        return errors


@dataclass(frozen=True, slots=True)
class EqualBinSums(ResidualSums):
    """Counts reviews, and adds up prediction less outcome, in equally wide bins."""

    cells: int

    def cell(self, predictions: Predictions) -> IntArray:
        p = predictions.p.astype(np.float64, copy=False)
        return np.minimum((p * self.cells).astype(np.int64), self.cells - 1)


@dataclass(frozen=True, slots=True)
class Ece(SketchMetric):
    """Mean calibration error in equally wide bins of the prediction.

    Mean over reviews of the gap between mean prediction and share of recalls in their
    bin; lower is better. It depends on the bins, so prefer SmoothECE.

    Parameters
    ----------
    bins : int
        Bin b holds predictions from b / bins up to, not including, (b + 1) / bins; the
        last one holds 1 too. Part of the name unless it is 10.

    References
    ----------
    Naeini, Cooper and Hauskrecht (2015), doi:10.1609/aaai.v29i1.9602.

    Examples
    --------
    >>> round(Ece().of_outcomes([0.92, 0.98, 0.15], [True, False, False]), 6)
    0.35
    """

    bins: int = DEFAULT_BINS
    better, section = "lower", "calibration"
    bounds = (0.0, 1.0)

    def __post_init__(self) -> None:
        """Check the number of bins."""
        if self.bins < 1:
            raise ConfigError(f"ece needs at least 1 bin, not {self.bins}")

    @property
    def name(self) -> str:
        """``ece``, with the number of bins where it is unusual."""
        return "ece" if self.bins == DEFAULT_BINS else f"ece_{self.bins}"

    @property
    def needs(self) -> tuple[Sums, ...]:
        return (EqualBinSums(self.bins),)

    def of(self, sketch: Sketch) -> float:
        count, residual = sketch[self.needs[0]].T
        return float(np.abs(residual).sum() / count.sum())
