"""Estimates from lots: what changes by chance is the instrument.

Let z be an instrument whose mean is known to be 0 given all that was known before the draw, x the
exposure and y the outcome. The effect of x on y is sum(z * y) / sum(z * x), and an effect b is
tested by whether sum(z * (y - b * x)) is 0 but for chance: Anderson and Rubin (1949), Estimation of
the parameters of a single equation, Annals of Mathematical Statistics 20, 46-63. Reviews of a
cluster, such as a card, may be correlated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from srs_eval.nouns import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Effect:
    """A ratio of two sums over clusters, with tests of its value that need no large denominator."""

    value: float
    se: float
    top: FloatArray  # [clusters]: Sums of instrument times outcome
    bottom: FloatArray  # [clusters]: Sums of instrument times exposure

    def z(self, value: float) -> float:
        """Return the deviation from a supposed value of the effect, in standard errors."""
        moments = self.top - value * self.bottom
        return float(moments.sum() / np.sqrt(moments @ moments))

    def p_value(self, value: float) -> float:
        """Return the two-sided p-value of a supposed value."""
        return 2 * float(ndtr(-abs(self.z(value))))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the values that are not rejected; infinite where the instrument is too weak."""
        t2 = float(ndtri((1 + level) / 2)) ** 2
        a = self.bottom.sum() ** 2 - t2 * self.bottom @ self.bottom
        b = self.top.sum() * self.bottom.sum() - t2 * self.top @ self.bottom
        c = self.top.sum() ** 2 - t2 * self.top @ self.top
        if a <= 0:
            return -math.inf, math.inf
        half = math.sqrt(max(b * b - a * c, 0.0))
        return (b - half) / a, (b + half) / a


def effect(
    instrument: FloatArray, outcome: FloatArray, exposure: FloatArray, cluster: IntArray
) -> Effect:
    """Estimate the effect of an exposure on an outcome by an instrument, all [n].

    >>> z = np.array([-1.0, 1.0, -1.0, 1.0])
    >>> effect(z, 3 * z, 2 * z, np.arange(4)).value
    1.5
    """
    _, code = np.unique(cluster, return_inverse=True)
    top = np.bincount(code, instrument * outcome).astype(np.float64)
    bottom = np.bincount(code, instrument * exposure).astype(np.float64)
    total = bottom.sum()
    if not len(top) or total == 0:
        return Effect(math.nan, math.nan, top, bottom)
    value = top.sum() / total
    moments = top - value * bottom
    return Effect(float(value), math.sqrt(moments @ moments) / abs(total), top, bottom)


def regression(instrument: FloatArray, outcome: FloatArray, cluster: IntArray) -> Effect:
    """Estimate the change of an outcome per unit of an instrument, which has mean 0."""
    return effect(instrument, outcome, instrument, cluster)


def strength(instrument: FloatArray, exposure: FloatArray, cluster: IntArray) -> float:
    """Return the F statistic of the first stage: how surely the instrument moves the exposure."""
    stage = regression(instrument, exposure, cluster)
    return (stage.value / stage.se) ** 2 if stage.se > 0 else math.nan


def within(values: FloatArray, cell: IntArray) -> FloatArray:
    """Return values less the mean of their cell.

    >>> within(np.array([1.0, 3.0, 7.0]), np.array([0, 0, 1])).tolist()
    [-1.0, 1.0, 0.0]
    """
    _, code = np.unique(cell, return_inverse=True)
    return values - (np.bincount(code, values) / np.bincount(code))[code]


def permutation_z(instrument: FloatArray, outcome: FloatArray, cell: IntArray) -> float:
    """Return how far sum(instrument * outcome) is from its mean over all permutations, in sds.

    Draws are permuted within cells, in which all lots are the same. Mean and variance over all
    permutations are exact: Hoeffding (1951), A combinatorial central limit theorem, Annals of
    Mathematical Statistics 22, 558-566.
    """
    _, code = np.unique(cell, return_inverse=True)
    z, y = within(instrument, code), within(outcome, code)
    size = np.bincount(code)
    squares = np.bincount(code, z * z) * np.bincount(code, y * y)
    variance = (squares[size > 1] / (size[size > 1] - 1)).sum()
    return float(z @ y / math.sqrt(variance)) if variance > 0 else math.nan
