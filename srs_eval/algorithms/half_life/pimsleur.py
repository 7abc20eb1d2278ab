"""Pimsleur's schedule as a model of memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from srs_eval.algorithms.half_life.half_life import HalfLifeModel
from srs_eval.nouns import Algorithm, IntArray, Reviews, Vector

_SLOPE, _START = 2.35, -16.46


def exposures(right: Vector, wrong: Vector) -> Vector:
    """Grow with each answer, right or wrong: from about a second to about 9 months."""
    return _SLOPE * (right + wrong) + _START


@dataclass(frozen=True, slots=True)
class Pimsleur(Algorithm):
    """Pimsleur's schedule: the half-life grows fivefold with each review, whatever its outcome.

    Pimsleur (1967), *A Memory Schedule*, The Modern Language Journal 51,
    https://doi.org/10.2307/321812, as a baseline of Settles & Meeder (2016), *A Trainable
    Spaced Repetition Model for Language Learning*, ACL, https://doi.org/10.18653/v1/P16-1174.
    The half-life is ``2**(2.35 (right + wrong) - 16.46)`` days, as in the code of that paper
    (which prints 2.4 and 16.5), at least 15 minutes and at most 274 days. Reads elapsed time
    and how many reviews there were; no parameters. No published row.
    """

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> HalfLifeModel:
        """Return the rule without looking at anything."""
        return HalfLifeModel(exposures)
