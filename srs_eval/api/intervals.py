"""Next intervals of cards, with what their reviews leave open about them, and made-up cards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from srs_eval.algorithms.algorithm import (
    Algorithm,
    MemoryModel,
    Sampling,
    has_curve,
)
from srs_eval.data.cards import with_next_reviews
from srs_eval.data.reviews import (
    IntArray,
    Matrix,
    Reviews,
    Vector,
)
from srs_eval.evaluation.evaluate import FittedUser
from srs_eval.exports.intervals import days_until

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


def answered_on_time(
    model: MemoryModel,
    histories: Sequence[Sequence[int]],
    retention: float | Vector = 0.9,
    preset: Sequence[int] | None = None,
) -> tuple[Reviews, IntArray]:
    """Return a log with a card for each history of ratings, and the row of each card's next review.

    Each answer but the first is given after the interval of `model`, in whole days, at least one
    and at most 100 years. `preset` is that of each card.
    """
    wanted = np.broadcast_to(np.asarray(retention, np.float64), len(histories))
    gaps = [[-1] for _ in histories]
    while True:
        reviews, rows = with_next_reviews(_log(histories, gaps, preset))
        rows = rows[np.argsort(reviews.card[rows])]
        open_cards = [n for n, own in enumerate(gaps) if len(own) < len(histories[n])]
        if not open_cards:
            return reviews, rows
        days = next_intervals(model, reviews, rows, wanted)
        for card in open_cards:
            gaps[card].append(int(np.clip(np.rint(days[card]), 1, 36500)))


def _log(
    histories: Sequence[Sequence[int]], gaps: Sequence[Sequence[int]], preset: Sequence[int] | None
) -> Reviews:
    """Return the log of the answers whose intervals are known."""
    sizes = [len(own) for own in gaps]
    card = np.repeat(np.arange(len(gaps)), sizes)
    rating = np.concatenate([h[:n] for h, n in zip(histories, sizes, strict=True)])
    gap = np.concatenate(gaps)
    day = np.concatenate([np.cumsum([0, *own[1:]]) for own in gaps])
    order = np.argsort(day, kind="stable")
    return Reviews(
        user="made up",
        card=card,
        day=day,
        rating=rating,
        elapsed_days=gap,
        elapsed=np.maximum(gap, 0).astype(np.float64),
        row=np.arange(len(card)),
        preset=None if preset is None else np.asarray(preset)[card],
    ).take(order)
