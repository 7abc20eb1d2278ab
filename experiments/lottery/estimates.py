"""Estimates from lots: what changes by chance is the instrument.

Let z be an instrument whose mean is known to be 0 given all that was known before the draw, x the
exposure and y the outcome. The effect of x on y is sum(z * y) / sum(z * x), and an effect b is
tested by whether sum(z * (y - b * x)) is 0 but for chance: Anderson and Rubin (1949), Estimation of
the parameters of a single equation, Annals of Mathematical Statistics 20, 46-63. Reviews of a
cluster, such as a card, may be correlated.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from srs_eval.data.reviews import FloatArray, IntArray

LEVEL = 0.95


class Effect(NamedTuple):
    """A ratio of two sums, and the 95 % interval of a test that needs no large denominator."""

    value: float = math.nan
    se: float = math.nan
    low: float = -math.inf
    high: float = math.inf

    @property
    def t(self) -> float:
        """The value in standard errors; 0 where these are."""
        return self.value / self.se if self.se > 0 else 0.0


def effect(
    instrument: FloatArray, outcome: FloatArray, exposure: FloatArray, cluster: IntArray
) -> Effect:
    """Estimate the effect of an exposure on an outcome by an instrument, all [n].

    >>> z = np.array([-1.0, 1.0, -1.0, 1.0])
    >>> effect(z, 3 * z, 2 * z, np.arange(4)).value
    1.5
    """
    _, code = np.unique(cluster, return_inverse=True)
    top, bottom = np.bincount(code, instrument * outcome), np.bincount(code, instrument * exposure)
    total = bottom.sum()
    if total == 0:
        return Effect()
    value = top.sum() / total
    moments = top - value * bottom
    se = math.sqrt(moments @ moments) / abs(total)
    t2 = float(ndtri((1 + LEVEL) / 2)) ** 2
    a = total**2 - t2 * bottom @ bottom
    if a <= 0:  # a weak instrument rejects nothing
        return Effect(float(value), se)
    b = top.sum() * total - t2 * top @ bottom
    half = math.sqrt(max(b * b - a * (top.sum() ** 2 - t2 * top @ top), 0.0))
    return Effect(float(value), se, float(b - half) / a, float(b + half) / a)


def change(instrument: FloatArray, outcome: FloatArray, cluster: IntArray) -> Effect:
    """Estimate the change of an outcome per unit of an instrument, which has mean 0."""
    return effect(instrument, outcome, instrument, cluster)


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
