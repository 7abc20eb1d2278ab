"""Small logs by columns, and invented ones with seconds between answers and answer times."""

from dataclasses import replace

import numpy as np

from srs_eval.data.schema import reviews_from_columns

_DAY = 86_400


def log_of(card, day, **columns):
    """Build a log whose reviews are Good, unless ratings are given."""
    columns = {"rating": [3] * len(card), **columns}
    return reviews_from_columns(user="ann", source="log", card=card, day=day, **columns)


def timed(log, *, seed=0, hasty=0.1):
    """Add to each review whole seconds since the answer before and a duration.

    A share `hasty` of the same-day reviews comes within few seconds, down to none.
    """
    rng = np.random.default_rng(seed)
    n = len(log)
    within = np.where(rng.random(n) < hasty, rng.integers(0, 4, n), rng.integers(60, 30_000, n))
    seconds = np.where(log.elapsed_days > 0, log.elapsed_days * _DAY, 0) + within
    return replace(
        log,
        elapsed_seconds=np.where(log.elapsed_days < 0, -1.0, seconds.astype(np.float64)),
        duration_ms=rng.integers(0, 30_000, n).astype(np.float64),
    )
