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
from collections.abc import Sequence
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
    return lines_of([counted])[0]


def lines_of(tallies: Sequence[Tally]) -> list[CalibrationLine]:
    """Fit the line of each of several tallies, together: see `line_of`."""
    joined = [_joined(counted) for counted in tallies]
    centre = np.zeros(len(tallies))
    x, recalled, forgotten = np.zeros((3, len(tallies), max(map(len, joined))))
    for row, (counted, few) in enumerate(zip(tallies, joined, strict=True)):
        if all(map(_overlaps, {counted, few})):  # a row without reviews has no line
            # Centred, intercept and slope are identifiable even for very similar predictions.
            centre[row] = _log_odds(counted.p @ counted.count / counted.n)
            x[row, : len(few)] = _log_odds(few.p) - centre[row]
            recalled[row, : len(few)], forgotten[row, : len(few)] = few.recalled, few.forgotten
    level, slope = _newton(x, recalled, forgotten, centre)
    return list(map(CalibrationLine, slope.tolist(), (level - centre * slope).tolist()))


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
    ends = []
    for held in (counted.recalled > 0, counted.forgotten > 0):
        ends += [np.argmax(held), -1 - np.argmax(held[::-1])]
    lowest, highest, low, high = np.clip(counted.p[ends], CLIP, 1 - CLIP).tolist()
    return bool(highest > low and high > lowest)


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


def _newton(
    x: FloatArray, recalled: FloatArray, forgotten: FloatArray, centre: FloatArray
) -> FloatArray:
    """Maximise the likelihoods of lines [2, lines] over x [lines, m], from calibrated predictions.

    All at once by Newton's method; NaN where it does not converge.
    """
    found = np.full((2, len(x)), math.nan)
    left, line = np.arange(len(x)), np.array([centre, np.ones(len(x))])
    count = recalled + forgotten
    enough = np.minimum(SURE, LAST * count.sum(axis=1))
    against = _log_odds_against(line, x)
    for _ in range(MOST_ITERATIONS):
        odds_against = np.exp(against)
        fitted = 1 / (1 + odds_against)
        rest = odds_against * fitted
        # Not recalls less fitted ones, whose difference loses digits where all are certain.
        missed = recalled * rest - forgotten * fitted
        weight = count * fitted * rest
        gradient = np.array([missed.sum(axis=1), np.vecdot(missed, x)])
        level, mixed, spread = weight.sum(axis=1), np.vecdot(weight, x), np.vecdot(weight, x * x)
        determinant = level * spread - mixed * mixed
        # All weight at one prediction, as far as rounding can tell.
        is_line = determinant > 1e-14 * level * spread
        inverse = np.array([[spread, -mixed], [-mixed, level]]) / np.where(is_line, determinant, 1)
        step = (inverse * gradient).sum(axis=1)
        promised = (step * gradient).sum(axis=0)
        is_last = promised <= enough
        found[:, left[is_line & is_last]] = (line + step)[:, is_line & is_last]
        open_ = is_line & ~is_last
        if not open_.all():
            if not open_.any():
                break
            left, promised, enough, against = (
                each[open_] for each in (left, promised, enough, against)
            )
            line, step = line[:, open_], step[:, open_]
            x, recalled, forgotten, count = (
                each[open_] for each in (x, recalled, forgotten, count)
            )
        after = _log_odds_against(line + step, x)
        if promised.max() > SURE:
            here = _loss(against, count, forgotten)
            for _ in range(MOST_ITERATIONS):  # halve steps until the likelihood increases
                is_worse = (promised > SURE) & ~(_loss(after, count, forgotten) <= here)
                if not is_worse.any():
                    break
                step[:, is_worse] /= 2
                after = _log_odds_against(line + step, x)
        line, against = line + step, after
    return found


def _log_odds_against(line: FloatArray, x: FloatArray) -> FloatArray:
    """Log odds against recall [lines, m], by lines over x."""
    # Beyond these a probability is 0 or 1, and exp has no number.
    against: FloatArray = np.clip(-line[0][:, None] - line[1][:, None] * x, -700, 700)
    return against


def _loss(against: FloatArray, count: FloatArray, forgotten: FloatArray) -> FloatArray:
    """Log losses [lines] of log odds against recall."""
    losses: FloatArray = np.vecdot(count, np.log1p(np.exp(against)))
    losses -= np.vecdot(forgotten, against)
    return losses


def _log_odds(p: FloatArray | float) -> FloatArray:
    """Log odds of probabilities, clipped as predictions are."""
    odds: FloatArray = logit(np.clip(p, CLIP, 1 - CLIP))
    return odds


def _fit_lines(sketches: Sequence[Sketch]) -> None:
    """Fit the lines of several sketches at once."""
    held = [sketch for sketch in sketches if len(sketch.tally)]
    if held:
        for sketch, line in zip(held, lines_of([each.tally for each in held]), strict=True):
            sketch.keep(line_of, line)


class CalibrationSlope(SketchMetric):
    """Slope of the calibration line, best at 1: see `line_of`."""

    name, better, section = "calibration_slope", "neither", "calibration"
    prepare = staticmethod(_fit_lines)

    def of(self, sketch: Sketch) -> float:
        return sketch.derived(line_of).slope


class CalibrationIntercept(SketchMetric):
    """Intercept of the calibration line: see `line_of`."""

    name, better, section = "calibration_intercept", "zero", "calibration"
    prepare = staticmethod(_fit_lines)

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
