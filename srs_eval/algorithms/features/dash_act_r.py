"""DASH[ACT-R]: study history that fades by a power of its age."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from srs_eval.algorithms.features.log_odds import FittedLogOdds, Slopes
from srs_eval.algorithms.history import History
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.engine.reference import Recipe
from srs_eval.nouns import FloatArray, IntArray, Vector

_INF = math.inf
# In days: of younger reviews the power law would make too much.
_YOUNGEST = 0.1


@dataclass(frozen=True, slots=True)
class FadingTraces:
    """Log-odds that grow with the logarithm of what is left of all earlier reviews.

    Parameters: slope of the logarithm, exponent of forgetting, what a failure and what a pass
    leaves after one day, and the bias.
    """

    # No spread is published; this is about the size of the parameters.
    parameters: ClassVar[ParameterSpace] = ParameterSpace(
        defaults=(1.4164, 0.516, -0.0564, 1.9223, 1.0549),
        lower=(0.001, 0.001, -_INF, -_INF, -_INF),
        upper=(_INF,) * 5,
        spread=(0.5,) * 5,
    )

    def at(self, history: History, rows: IntArray, elapsed: FloatArray) -> Traces:
        """Remember which reviews are meant: how they fade depends on the parameters."""
        return Traces(history, rows, elapsed)


@dataclass(frozen=True, slots=True)
class Traces:
    """What is left of the reviews before each of `rows`, as a function of the parameters."""

    history: History
    rows: IntArray
    elapsed: FloatArray

    def __call__(self, w: Vector) -> tuple[Vector, Slopes]:
        slope, exponent, failed, passed, bias = w
        left = np.empty((len(self.rows), 3))  # of failures, of passes, derivative of both
        recalled = self.history.of_places(self.history.reviews.recalled)
        for pairs in self.history.pairs(self.rows, self.elapsed):
            log_age = np.log(np.maximum(pairs.age, _YOUNGEST))
            trace = np.exp(-exponent * log_age) * (pairs.age > _YOUNGEST)
            after_pass = recalled[pairs.place]
            worth = np.where(after_pass > 0, passed, failed)
            left[pairs.rows, 0] = pairs.sums(trace * (1 - after_pass))
            left[pairs.rows, 1] = pairs.sums(trace * after_pass)
            left[pairs.rows, 2] = pairs.sums(-log_age * trace * worth)
        after_failures, after_passes, by_exponent = left.T
        total = after_failures * failed + after_passes * passed
        logarithm = np.log1p(np.maximum(total, 0.0))
        by_total = np.where(total > 0, slope / (1 + np.maximum(total, 0.0)), 0.0)
        slopes = (logarithm, by_exponent, after_failures, after_passes, np.ones(len(total)))
        derivatives = np.stack(slopes, axis=1)
        derivatives[:, 1:4] *= by_total[:, None]
        return slope * logarithm + bias, derivatives


class DashActR(FittedLogOdds):
    """DASH[ACT-R]: every earlier review leaves a trace that fades by a power of its age.

    After the DASH of Lindsey et al. (2014), with the forgetting of ACT-R in place of time
    windows, in the form of Randazzo (2022), *Memory Models for Spaced Repetition Systems*.
    Reads elapsed time and pass or fail, passing over reviews less than 0.1 days ago; 5
    parameters. Published row, without same-day reviews: log loss 0.3728, RMSE(bins)
    0.0886, AUC 0.6239.

    Options: see `FittedLogOdds`.
    """

    name = "dash_act_r"
    mathematics = FadingTraces
    recipe = Recipe()
