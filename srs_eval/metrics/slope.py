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
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from srs_eval.metrics.proper import CLIP
from srs_eval.metrics.sketch import Sketch, SketchMetric
from srs_eval.metrics.sums import CHUNK
from srs_eval.metrics.tally import Tally
from srs_eval.nouns import FloatArray

# Predictions are joined within this many equal steps of the log odds for a first fit.
STEPS = 2**13
MOST_ITERATIONS = 100
# A step that promises no more nats than this needs no check that it helps.
SURE = 1e-3
# What a last step may promise, for each review: the error it leaves is smaller yet.
LAST = 1e-10
# Steps of log odds this small are the last.
SHORT = 1e-6


class CalibrationLine(NamedTuple):
    """Log odds of recall, as a line over the predicted log odds; NaN where undefined."""

    slope: float
    intercept: float


NO_LINE = CalibrationLine(math.nan, math.nan)


def line_of(counted: Tally) -> CalibrationLine:
    """Fit log odds of recall = intercept + slope * predicted log odds, clipped as for `LogLoss`.

    Best at slope 1 and intercept 0, in any real numbers. NaN if only one outcome happened, if all
    predictions are equal, or if a threshold on the prediction separates the outcomes: no finite
    line is the most likely then.
    """
    if not _overlaps(counted):
        return NO_LINE
    # Centred, intercept and slope are identifiable even for very similar predictions.
    centre = _log_odds(float(counted.p @ counted.count) / counted.n)
    line = np.array([_log_odds(counted.n_recalled / counted.n), 0.0])
    few = _joined(counted)
    if few is not counted and _overlaps(few):
        found = _newton(few, centre, line)
        line = line if found is None else found
    found = _newton(counted, centre, line)
    if found is None:
        return NO_LINE
    return CalibrationLine(float(found[1]), float(found[0] - centre * found[1]))


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
    """Join predictions whose log odds are close together, if they are many."""
    if len(counted) <= STEPS:
        return counted
    edges = expit(np.linspace(-36.1, 36.1, STEPS))
    first = np.unique(np.r_[0, np.searchsorted(counted.p, edges)])
    first = first[first < len(counted)]
    recalled, forgotten = (
        np.add.reduceat(counts, first) for counts in (counted.recalled, counted.forgotten)
    )
    # The middle one, so that joined predictions near 1 keep all their digits.
    middle = (first + np.r_[first[1:], len(counted)]) // 2
    return Tally(counted.p[middle], forgotten, recalled)


def _newton(counted: Tally, centre: float, line: FloatArray) -> FloatArray | None:
    """Maximise the likelihood by Newton's method; None if it does not converge."""
    for _ in range(MOST_ITERATIONS):
        gradient, curvature = _derivatives(counted, centre, line)
        level, mixed, spread = curvature
        determinant = level * spread - mixed * mixed
        # All weight at one prediction, as far as rounding can tell.
        if not determinant > 1e-14 * level * spread:
            return None
        step = np.array([[spread, -mixed], [-mixed, level]]) @ gradient / determinant
        promised = float(step @ gradient)
        if promised > SURE:
            step = _shortened(counted, centre, line, step)
        line = line + step
        if promised <= min(SURE, LAST * counted.n):
            return line
    return None


def _shortened(counted: Tally, centre: float, line: FloatArray, step: FloatArray) -> FloatArray:
    """Halve a step until the likelihood increases."""
    here = _loss(counted, centre, line)
    for _ in range(MOST_ITERATIONS):
        if _loss(counted, centre, line + step) <= here:
            break
        step = step / 2
    return step


def _derivatives(
    counted: Tally, centre: float, line: FloatArray
) -> tuple[FloatArray, tuple[float, float, float]]:
    """Slope of the log-likelihood [2], and minus its second derivatives."""
    gradient, curvature = np.zeros(2), np.zeros(3)
    for x, forgotten, recalled in _pieces(counted, centre):
        fitted = line[1] * x
        fitted += line[0]
        # Beyond these log odds a probability is 0 or 1, and exp has no number.
        np.clip(fitted, -700, 700, out=fitted)
        rest = np.exp(np.negative(fitted, out=fitted), out=fitted)
        fitted = np.reciprocal(1 + rest)
        rest *= fitted
        # Not recalls less fitted ones, whose difference loses digits where all are certain.
        missed = recalled * rest - forgotten * fitted
        gradient += missed.sum(), missed @ x
        rest *= fitted
        rest *= forgotten + recalled
        lever = rest * x
        curvature += rest.sum(), lever.sum(), lever @ x
    return gradient, (float(curvature[0]), float(curvature[1]), float(curvature[2]))


def _loss(counted: Tally, centre: float, line: FloatArray) -> float:
    """Minus the log-likelihood."""
    total = 0.0
    for x, forgotten, recalled in _pieces(counted, centre):
        fitted = line[0] + line[1] * x
        total += float(forgotten @ np.logaddexp(0, fitted) + recalled @ np.logaddexp(0, -fitted))
    return total


def _pieces(counted: Tally, centre: float) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
    """Predicted log odds less `centre`, lapses, recalls: in parts that stay in the cache."""
    for begin in range(0, len(counted), CHUNK):
        rows = slice(begin, begin + CHUNK)
        p = np.clip(counted.p[rows], CLIP, 1 - CLIP)
        p /= 1 - p
        x = np.log(p, out=p)
        x -= centre
        yield x, counted.forgotten[rows], counted.recalled[rows]


def _shift(counted: Tally, start: float) -> float:
    """Find the shift of all log odds that makes predictions right on the whole."""
    base = _log_odds(counted.n_recalled / counted.n)
    lowest = base - _log_odds(float(counted.p[-1]))
    highest = base - _log_odds(float(counted.p[0]))
    shift = min(max(start, lowest), highest)
    for _ in range(MOST_ITERATIONS):
        missed, slope = _shortfall(counted, math.exp(shift))
        lowest, highest = (shift, highest) if missed > 0 else (lowest, shift)
        step = missed / slope if slope > 0 else math.inf
        if abs(step) <= SHORT:
            return shift + step
        # A step outside the bracket is replaced by bisection.
        shift = shift + step if lowest < shift + step < highest else (lowest + highest) / 2
    return shift


def _shortfall(counted: Tally, factor: float) -> tuple[float, float]:
    """Recalls less those expected once all odds have a factor, and what more odds would add."""
    missed = slope = 0.0
    for begin in range(0, len(counted), CHUNK):
        rows = slice(begin, begin + CHUNK)
        p = np.clip(counted.p[rows], CLIP, 1 - CLIP)
        forgotten, recalled = counted.forgotten[rows], counted.recalled[rows]
        odds = factor * p
        odds /= np.subtract(1, p, out=p)
        rest = np.reciprocal(1 + odds, out=p)
        odds *= rest
        missed += float(recalled @ rest - forgotten @ odds)
        odds *= rest
        slope += float(odds @ forgotten + odds @ recalled)
    return missed, slope


def _log_odds(p: float) -> float:
    """Log odds of a probability, clipped as predictions are."""
    return float(logit(min(max(p, CLIP), 1 - CLIP)))


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
        counted = sketch.tally
        if not counted.has_both_outcomes:
            return math.nan
        few = _joined(counted)
        return _shift(counted, _shift(few, 0.0) if few is not counted else 0.0)
