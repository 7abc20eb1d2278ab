"""Pimsleur's schedule: the half-life grows fivefold with each review, whatever its outcome.

    cd examples/pimsleur
    python -m srs_eval --config-dir conf -m algo=pimsleur,avg

Pimsleur (1967), *A Memory Schedule*, https://doi.org/10.2307/321812, as a baseline of Settles &
Meeder (2016), https://doi.org/10.18653/v1/P16-1174: 2**(2.35 n - 16.46) days after n reviews, at
least 15 minutes and at most 274 days.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from srs_eval.algorithms.algorithm import Algorithm
from srs_eval.data.cards import rows_by_card
from srs_eval.data.reviews import FloatArray, IntArray, Reviews


@dataclass(frozen=True)
class Schedule:
    """A half-life by the number of reviews."""

    parameters: tuple[float, ...] = ()

    def predict(self, reviews: Reviews, rows: IntArray) -> FloatArray:
        """Predict recall at each of `rows`."""
        return self.predict_at(reviews, rows, reviews.elapsed[rows, None])[:, 0]

    def predict_at(self, reviews: Reviews, rows: IntArray, elapsed: FloatArray) -> FloatArray:
        """Predict recall at other elapsed times, [rows, k]."""
        n = rows_by_card(reviews.card).nth[rows]
        half_life = np.clip(2.0 ** (2.35 * np.minimum(n, 20) - 16.46), 15 / 1440, 274)
        return np.clip(0.5 ** (elapsed / half_life[:, None]), 0.0001, 0.9999)


@dataclass(frozen=True)
class Pimsleur(Algorithm):
    """The rule, which learns nothing."""

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> Schedule:
        """Return the rule."""
        return Schedule()
