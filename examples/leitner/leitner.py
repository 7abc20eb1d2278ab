"""The Leitner system: each right answer doubles the half-life, each wrong one halves it.

    cd examples/leitner
    python -m srs_eval --config-dir conf -m algo=leitner,avg

Leitner (1972), *So lernt man lernen*, as a baseline of Settles & Meeder (2016),
https://doi.org/10.18653/v1/P16-1174: at least 15 minutes and at most 274 days.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from srs_eval.algorithms.algorithm import Algorithm
from srs_eval.data.cards import rows_by_card
from srs_eval.data.reviews import FloatArray, IntArray, Reviews


@dataclass(frozen=True)
class Boxes:
    """A half-life of 2**(right - wrong) days."""

    parameters: tuple[float, ...] = ()

    def predict(self, reviews: Reviews, rows: IntArray) -> FloatArray:
        """Predict recall at each of `rows`."""
        return self.predict_at(reviews, rows, reviews.elapsed[rows, None])[:, 0]

    def predict_at(self, reviews: Reviews, rows: IntArray, elapsed: FloatArray) -> FloatArray:
        """Predict recall at other elapsed times, [rows, k]."""
        right = rows_by_card(reviews.card).earlier(reviews.recalled)
        wrong = rows_by_card(reviews.card).earlier(~reviews.recalled)
        half_life = np.clip(2.0 ** np.clip(right - wrong, -9, 9)[rows], 15 / 1440, 274)
        return np.clip(0.5 ** (elapsed / half_life[:, None]), 0.0001, 0.9999)


@dataclass(frozen=True)
class Leitner(Algorithm):
    """The rule, which learns nothing."""

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> Boxes:
        """Return the rule."""
        return Boxes()
