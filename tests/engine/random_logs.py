"""Invented histories for the engine: short and long cards, no time and a century between."""

import numpy as np
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from srs_eval.nouns import Reviews

SEEDS = st.integers(0, 2**32 - 1)


def few(examples):
    """Ask for so many examples, and for none to be made smaller, which would take minutes."""
    return settings(
        derandomize=True,
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


LONGEST_ELAPSED = 36500.0


def log_of(card, rating, elapsed):
    """Make a log of columns, without asking whether anybody could have made it."""
    days = np.asarray(elapsed, float)
    n = len(days)
    return Reviews(
        user=1,
        card=np.asarray(card, np.int64),
        day=np.arange(n),
        rating=np.asarray(rating, np.int64),
        elapsed_days=days.astype(np.int64),
        elapsed=days,
        row=np.arange(n),
    )


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
    return log_of(card, rating, np.minimum(elapsed, LONGEST_ELAPSED))


def further_rows(reviews):
    """Rows that are not the first of their card."""
    first = np.unique(reviews.card, return_index=True)[1]
    return np.setdiff1d(np.arange(len(reviews)), first)


def drawn_log(seed, cards, longest, exponent):
    """Draw a log that has something to predict."""
    log = random_log(np.random.default_rng(seed), cards, longest, exponent=exponent)
    return log if len(further_rows(log)) else log_of([1, 1], [3, 1], [0, 2])


def logs(*, cards=40, reviews=60):
    """Logs of 1 to `cards` cards of 1 to `reviews` reviews."""
    sizes = st.integers(1, cards), st.integers(2, reviews)
    return st.builds(drawn_log, SEEDS, *sizes, st.sampled_from([1.0, 2.0, 4.6]))
