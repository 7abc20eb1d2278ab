"""Calibration slope and intercept: outcomes regressed on predictions, both as log odds.

A slope below 1 means that predictions are too extreme, one above 1 that they are not extreme
enough. Calibration-in-the-large, the intercept with the slope fixed at 1, is above 0 if
predictions are too low on average and below 0 if they are too high.

References
----------
Cox (1958), doi:10.1093/biomet/45.3-4.562; Van Calster et al. (2019),
doi:10.1186/s12916-019-1466-7.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit

from srs_eval.metrics.proper import CLIP
from srs_eval.metrics.sketch import Sketch, SketchMetric
from srs_eval.metrics.tally import Tally, from_sums
from srs_eval.nouns import FloatArray

# More distinct predictions are joined: neighbours in equal numbers, and by steps of log odds.
MOST = 2**14
MOST_ITERATIONS = 100
# A step that promises no more nats than this needs no check that it helps.
SURE = 1e-3
# What a last step may promise, for each review: the error it leaves is smaller yet.
LAST = 1e-10


class CalibrationLine(NamedTuple):
    """Log odds of recall, as a line over the predicted log odds; NaN where undefined."""

    slope: float
    intercept: float


def line_of(counted: Tally) -> CalibrationLine:
    """Fit log odds of recall = intercept + slope * predicted log odds, clipped as for `LogLoss`.

    Best at slope 1 and intercept 0, in any real numbers. NaN if only one outcome happened, if all
    predictions are equal, or if a threshold on the prediction separates the outcomes: no finite
    line is the most likely then.
    """
    few = _joined(counted)
    # Centred, intercept and slope are identifiable even for very similar predictions.
    centre = float(_log_odds(counted.p @ counted.count / counted.n))
    overlap = _overlaps(counted) and _overlaps(few)
    line = _newton(_log_odds(few.p) - centre, few, centre) if overlap else None
    if line is None:
        return CalibrationLine(math.nan, math.nan)
    return CalibrationLine(float(line[1]), float(line[0] - centre * line[1]))


def shift_of(counted: Tally) -> float:
    """Find the shift of all log odds that makes predictions right on the whole."""
    if not counted.has_both_outcomes:
        return math.nan
    few = _joined(counted)
    x, base = _log_odds(few.p), _log_odds(few.n_recalled / few.n)
    odds = np.exp(x)

    def missed(shift: float) -> float:
        rest = 1 / (1 + odds * math.exp(shift))
        return few.n_recalled - float(few.count @ (1 - rest))

    lowest, highest = float(base - x[-1]), float(base - x[0])
    if missed(lowest) <= 0 or missed(highest) >= 0:  # all predictions are equal
        return lowest
    return float(brentq(missed, lowest, highest, xtol=1e-12))


def _overlaps(counted: Tally) -> bool:
    """Whether no threshold separates the outcomes, so that a finite line fits best."""
    if not counted.has_both_outcomes:
        return False
    recalled, forgotten = (
        np.clip(counted.p[[np.argmax(held), -1 - np.argmax(held[::-1])]], CLIP, 1 - CLIP)
        for held in (counted.recalled > 0, counted.forgotten > 0)
    )
    return bool(recalled[1] > forgotten[0] and forgotten[1] > recalled[0])


def _joined(counted: Tally) -> Tally:
    """Join predictions to neighbours whose log odds are close, if they are many."""
    if len(counted) <= MOST:
        return counted
    even = np.arange(0, len(counted), -(-2 * len(counted) // MOST))
    steps = np.searchsorted(counted.p, expit(np.linspace(-36.1, 36.1, MOST // 2)))
    first = np.union1d(even, steps[steps < len(counted)])
    columns = (counted.forgotten, counted.recalled, counted.p * counted.count)
    forgotten, recalled, total = (np.add.reduceat(column, first) for column in columns)
    return from_sums(forgotten, recalled, total)


def _newton(x: FloatArray, counted: Tally, centre: float) -> FloatArray | None:
    """Maximise the likelihood of a line over x by Newton's method, from calibrated predictions.

    None if it does not converge.
    """
    line: FloatArray = np.array([centre, 1.0])
    for _ in range(MOST_ITERATIONS):
        # Beyond these log odds a probability is 0 or 1, and exp has no number.
        odds_against = np.exp(np.clip(-line[0] - line[1] * x, -700, 700))
        fitted = 1 / (1 + odds_against)
        rest = odds_against * fitted
        # Not recalls less fitted ones, whose difference loses digits where all are certain.
        missed = counted.recalled * rest - counted.forgotten * fitted
        gradient = np.array([missed.sum(), missed @ x])
        weight = counted.count * fitted * rest
        level, mixed, spread = weight.sum(), weight @ x, weight @ (x * x)
        determinant = level * spread - mixed * mixed
        # All weight at one prediction, as far as rounding can tell.
        if not determinant > 1e-14 * level * spread:
            return None
        step = np.array([[spread, -mixed], [-mixed, level]]) @ gradient / determinant
        promised = float(step @ gradient)
        if promised > SURE:
            step = _shortened(x, counted, line, step)
        line = line + step
        if promised <= min(SURE, LAST * counted.n):
            return line
    return None


def _shortened(x: FloatArray, counted: Tally, line: FloatArray, step: FloatArray) -> FloatArray:
    """Halve a step until the likelihood increases."""

    def loss(line: FloatArray) -> float:
        fitted = line[0] + line[1] * x
        right, wrong = np.logaddexp(0, -fitted), np.logaddexp(0, fitted)
        return float(counted.recalled @ right + counted.forgotten @ wrong)

    here = loss(line)
    for _ in range(MOST_ITERATIONS):
        if loss(line + step) <= here:
            break
        step = step / 2
    return step


def _log_odds(p: FloatArray | float) -> FloatArray:
    """Log odds of probabilities, clipped as predictions are."""
    odds: FloatArray = logit(np.clip(p, CLIP, 1 - CLIP))
    return odds


class CalibrationSlope(SketchMetric):
    """Slope of the calibration line, best at 1: see `line_of`."""

    name, better, section = "calibration_slope", "neither", "calibration"

    def of(self, sketch: Sketch) -> float:
        return sketch.derived(line_of).slope


class CalibrationIntercept(SketchMetric):
    """Intercept of the calibration line: see `line_of`."""

    name, better, section = "calibration_intercept", "zero", "calibration"

    def of(self, sketch: Sketch) -> float:
        return sketch.derived(line_of).intercept


class CalibrationInTheLarge(SketchMetric):
    """Log odds by which predictions are too low on the whole: 0 is best.

    The intercept of the calibration line with its slope held at 1; below 0 predictions are
    too high. NaN if only one outcome happened.

    Examples
    --------
    >>> round(CalibrationInTheLarge().of_outcomes([0.5, 0.5, 0.5, 0.5], [1, 1, 1, 0]), 6)
    1.098612
    """

    name, better, section = "calibration_in_the_large", "zero", "calibration"

    def of(self, sketch: Sketch) -> float:
        return sketch.derived(shift_of)
