"""The Leitner system as a model of memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from srs_eval.algorithms.half_life.half_life import HalfLifeModel
from srs_eval.nouns import Algorithm, IntArray, Reviews, Vector


def boxes(right: Vector, wrong: Vector) -> Vector:
    """Go one box up for each right answer, and one down for each wrong one."""
    return right - wrong


@dataclass(frozen=True, slots=True)
class Leitner(Algorithm):
    """The Leitner system: each right answer doubles the half-life, each wrong one halves it.

    Leitner (1972), *So lernt man lernen*, as a baseline of Settles & Meeder (2016), *A Trainable
    Spaced Repetition Model for Language Learning*, ACL, https://doi.org/10.18653/v1/P16-1174.
    The half-life is ``2**(right - wrong)`` days, at least 15 minutes and at most 274 days. Reads
    elapsed time and pass or fail; no parameters. No published row.
    """

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> HalfLifeModel:
        """Return the rule without looking at anything."""
        return HalfLifeModel(boxes)
