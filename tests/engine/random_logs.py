"""Invented histories for the engine: short and long cards, no time and a century between."""

import numpy as np

from srs_eval.data.reviews import Reviews


def random_log(rng, cards, longest, *, exponent=2.0):
    """Draw cards of 1 to `longest` reviews, mixed with each other.

    Elapsed times are 0 in one of five reviews, a fraction of a day in another, whole days up to
    10**`exponent` otherwise.
    """
    lengths = rng.integers(1, longest + 1, cards)
    card = rng.permutation(np.repeat(rng.permutation(1000)[:cards], lengths))
    n = len(card)
    kind = rng.integers(0, 5, n)
    elapsed = np.where(kind == 1, rng.random(n), np.round(10 ** (exponent * rng.random(n))))
    elapsed[kind == 0] = 0.0
    elapsed[np.unique(card, return_index=True)[1]] = 0.0
    rating = rng.choice([1, 2, 3, 4], n, p=[0.2, 0.15, 0.5, 0.15])
    elapsed = np.minimum(elapsed, 36_500.0)
    days, each = elapsed.astype(np.int64), np.arange(n)
    return Reviews(1, card, each, rating, elapsed_days=days, elapsed=elapsed, row=each)


def further_rows(reviews):
    """Rows that are not the first of their card."""
    first = np.unique(reviews.card, return_index=True)[1]
    return np.setdiff1d(np.arange(len(reviews)), first)
