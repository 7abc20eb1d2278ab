"""Next intervals of cards, with what their reviews leave open about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from srs_eval.evaluation.evaluate import FittedUser
from srs_eval.exporting.intervals import days_until
from srs_eval.nouns import (
    REVIEW_COLUMNS,
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
_ANY_RATING = 3


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


def with_next_reviews(reviews: Reviews) -> tuple[Reviews, IntArray]:
    """Add one more review of each card after all others, which a model can be asked about.

    Returns the log and the rows of the reviews added.
    """
    _, last = np.unique(reviews.card[::-1], return_index=True)
    last = np.sort(len(reviews) - 1 - last)
    following: dict[str, Any] = {
        "day": np.full(len(last), reviews.day.max(initial=0)),
        "rating": np.full(len(last), _ANY_RATING),
        "elapsed_days": np.ones(len(last), np.int64),
        "elapsed": np.ones(len(last)),
        "row": np.arange(len(reviews), len(reviews) + len(last)),
    }
    columns: dict[str, Any] = {}
    for name in REVIEW_COLUMNS:
        column = getattr(reviews, name)
        if column is not None:
            added = following.get(name, column[last])
            columns[name] = np.concatenate([column, added.astype(column.dtype)])
    return replace(reviews, **columns), np.arange(len(reviews), len(reviews) + len(last))
