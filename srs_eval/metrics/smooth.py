"""Smoothing on [0, 1] with a Gaussian that is reflected at both ends, by cosine series.

A reflected Gaussian is what heat does in a rod with insulated ends, so smoothing masses
on a grid is one cosine transform, a factor for each frequency, and one transform back.
Masses of different chunks, processes or users add up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.fft import dct

from srs_eval.nouns import FloatArray, IntArray

NODES = 2**14
PIECE = 2**15
# Masses transformed at once: few enough to stay in the cache.
BLOCK = 2**18
# Transforms of fewer cells are not worth dividing.
SHORT = 2**9


def onto_grid(p: FloatArray, values: FloatArray, nodes: int) -> FloatArray:
    """Share each value between the two nodes around its prediction, of `nodes` from 0 to 1.

    Predictions increase.
    """
    masses = np.zeros(nodes)
    # In pieces that stay in the cache: several times faster for millions of predictions.
    for begin in range(0, len(p), PIECE):
        piece = slice(begin, begin + PIECE)
        position = p[piece] * (nodes - 1)
        cell = np.minimum(position.astype(np.int64), nodes - 2)
        upper = (position - cell) * values[piece]
        is_new = np.diff(cell, prepend=-1) > 0
        held, number = cell[is_new], np.cumsum(is_new) - 1
        masses[held] += np.bincount(number, values[piece] - upper)
        masses[held + 1] += np.bincount(number, upper)
    return masses


@dataclass(frozen=True, slots=True)
class CosineField:
    """Masses on evenly spaced nodes of [0, 1], ready to be smoothed at any bandwidth."""

    coefficients: FloatArray  # [..., nodes]: Sums of mass times cos(k pi x), for k from 0
    total_variation: FloatArray  # [...]: Sum of the absolute masses, which no smoothing exceeds

    @classmethod
    def of(cls, masses: FloatArray) -> CosineField:
        """Transform masses [..., nodes]."""
        # The type-I transform counts inner nodes twice and end nodes once.
        doubled = masses.reshape(-1, masses.shape[-1]).copy()
        doubled[:, [0, -1]] *= 2
        height = max(1, BLOCK // doubled.shape[-1])
        for begin in range(0, len(doubled), height):
            rows = slice(begin, begin + height)
            doubled[rows] = 0.5 * dct(doubled[rows], type=1, overwrite_x=True)
        return cls(doubled.reshape(masses.shape), np.abs(masses).sum(axis=-1))

    def damped(self, sigma: float) -> FloatArray:
        """Coefficients after smoothing, without the frequencies that vanish."""
        highest = self.coefficients.shape[-1]
        if sigma > 0:
            # Beyond this frequency the factor is below 1e-18.
            highest = math.ceil(min(highest - 1, 2.9 / sigma)) + 1
        frequency = np.arange(highest) * (math.pi * sigma)
        damped: FloatArray = self.coefficients[..., :highest] * np.exp(-0.5 * frequency**2)
        return damped

    def absolute_integrals(
        self, sigma: FloatArray, rows: IntArray | slice = slice(None)
    ) -> FloatArray:
        """Integrate absolute values of some rows over [0, 1], smoothed at bandwidths [rows]."""
        finest, rows = self.coefficients.shape[-1] - 1, np.arange(len(self.coefficients))[rows]
        # Beyond this frequency the factor is below 1e-18.
        lengths = 1 + np.ceil(np.minimum(finest, 2.9 / np.maximum(sigma, 1e-9))).astype(np.int64)
        # Sixteen points in a half-wave of the highest frequency left.
        cells = 2 ** np.ceil(np.log2(16 * lengths)).astype(np.int64)
        cells = np.minimum(finest, np.maximum(2**12, cells))
        integrals = np.empty(len(sigma))
        for size in set(cells.tolist()):  # several transforms at once are quicker
            alike = np.flatnonzero(cells == size)
            length = lengths[alike].max()
            waves = np.outer(sigma[alike], np.arange(length) * math.pi)
            damped = self.coefficients[rows[alike], :length] * np.exp(-0.5 * waves**2)
            integrals[alike] = _absolute_sums(damped, size) / size
        return integrals


def series_at(coefficients: FloatArray, where: FloatArray) -> FloatArray:
    """Evaluate smoothed fields [rows, points], given as `CosineField.damped`, at [points]."""
    waves = np.cos(np.outer(np.arange(coefficients.shape[-1]) * math.pi, where))
    waves[1:] *= 2
    fields: FloatArray = coefficients @ waves
    return fields


def _absolute_sums(coefficients: FloatArray, cells: int) -> FloatArray:
    """Sum absolute values of cosine series at the ends of cells of [0, 1], 0 and 1 by half.

    At odd places by a transform of type III, which takes half as long as one of type I.
    """
    half = cells // 2
    if half < SHORT or coefficients.shape[-1] > half:
        field = np.abs(dct(coefficients, type=1, n=cells + 1))
        sums: FloatArray = field.sum(axis=-1) - 0.5 * (field[..., 0] + field[..., -1])
        return sums
    between: FloatArray = np.abs(dct(coefficients, type=3, n=half)).sum(axis=-1)
    return between + _absolute_sums(coefficients, half)
