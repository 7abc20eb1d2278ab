"""Next intervals of cards, with what their reviews leave open about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from srs_eval.evaluation.evaluate import FittedUser
from srs_eval.exporting.intervals import days_until
from srs_eval.nouns import (
    Algorithm,
    IntArray,
    Matrix,
    MemoryModel,
    Reviews,
    Sampling,
    Vector,
    has_curve,
)

DRAWS = 200
LEVEL = 0.9


class Ranges(NamedTuple):
    """Values with the ends of their ranges, which are NaN where these are not known."""

    value: Vector
    lo: Vector
    hi: Vector

    @classmethod
    def of(cls, value: Vector, draws: Sequence[Vector], level: float) -> Ranges:
        """Take quantiles of draws; the value itself is always within."""
        if not draws:
            unknown = np.full(len(value), np.nan)
            return cls(value, unknown, unknown)
        below = (1 - level) / 2
        lo, hi = np.quantile(draws, [below, 1 - below], axis=0, method="nearest")
        return cls(value, np.minimum(lo, value), np.maximum(hi, value))


def next_intervals(
    model: MemoryModel, reviews: Reviews, rows: IntArray, retention: float | Vector
) -> Vector:
    """Return the days from the review before each of `rows` until recall falls to a retention."""
    assert has_curve(model)

    def curves(elapsed: Matrix) -> Matrix:
        return np.array(model.predict_at(reviews, rows, elapsed))

    return days_until(curves, len(rows), retention)


def sampled(algorithm: Algorithm, fitted: FittedUser, seed: int, count: int) -> list[MemoryModel]:
    """Draw models around a fit; none where the algorithm does not say how uncertain it is."""
    if not isinstance(algorithm, Sampling) or fitted.model is None or fitted.reviews is None:
        return []
    assert fitted.rows is not None
    reviews = fitted.reviews.seen_by(algorithm)
    rng = np.random.default_rng(seed)
    return list(algorithm.sample(reviews, fitted.rows, fitted.model, rng, count))
