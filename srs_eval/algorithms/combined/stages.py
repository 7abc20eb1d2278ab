"""Fits to growing parts of the training reviews, which predict the rest out of sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from srs_eval.algorithms.combined.wrapping import Asked, as_seen_by, fitted, log_odds
from srs_eval.errors import FitError, FitSkipped
from srs_eval.nouns import Algorithm, FloatArray, IntArray, MemoryModel, Reviews, Vector

_SHARES = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)
_FEWEST = 20


@dataclass(frozen=True, slots=True)
class Stages:
    """Fits of one algorithm to the first 1/32, 1/16, ... and all of the training reviews."""

    algorithm: Algorithm  # What was fitted, which says what its models may see
    models: tuple[MemoryModel, ...]  # The fits, each from the one before if the algorithm can
    begins: tuple[int, ...]  # First row after the training reviews of each

    def segments(self, reviews: Reviews) -> tuple[tuple[MemoryModel, int, int], ...]:
        """Return each model with the first row it predicts and the row after the last one.

        Rows before the second fit are predicted by the first, which has seen some of them.
        """
        begins = np.minimum([0, *self.begins[1:], len(reviews)], len(reviews)).tolist()
        return tuple(zip(self.models, begins[:-1], begins[1:], strict=True))

    def log_odds(self, reviews: Reviews) -> Vector:
        """Return log-odds of recall at all reviews that can be predicted, 0 at the others.

        Each is predicted by the latest fit to reviews before it, and from the log up to the end
        of its segment.
        """
        z = np.zeros(len(reviews))
        for model, begin, end in self.segments(reviews):
            rows = begin + np.flatnonzero(reviews.elapsed[begin:end] > 0)
            if len(rows):
                known = reviews if end == len(reviews) else reviews.take(np.arange(end))
                p = model.predict(*as_seen_by(self.algorithm, known, rows))
                z[rows] = log_odds(_checked(p))
        return z

    def log_odds_of(self, asked: Asked) -> Vector:
        """Return log-odds of recall that are asked for, each by the fit of its segment."""
        z = asked.unanswered()
        for model, begin, end in self.segments(asked.reviews):
            some = (asked.rows >= begin) & (asked.rows < end)
            if some.any():
                z[some] = log_odds(_checked(asked.of(some).seen_by(self.algorithm).by(model)))
        return z


def _checked(p: FloatArray) -> FloatArray:
    wrong = ~((p >= 0) & (p <= 1))
    if wrong.any():
        raise FitError(
            f"base: {wrong.sum():,} of {wrong.size:,} predictions are no probabilities, the first "
            f"of them {p[wrong][0]}"
        )
    return p


def fitted_in_stages(
    algorithm: Algorithm, reviews: Reviews, rows: IntArray, rng: np.random.Generator
) -> Stages:
    """Fit an algorithm to growing parts of the training rows, which are in time order."""
    models: list[MemoryModel] = []
    begins: list[int] = []
    sizes = [int(len(rows) * share) for share in _SHARES]
    for size in [*(size for size in sizes if size >= _FEWEST), len(rows)]:
        previous = models[-1] if models else None
        seen = as_seen_by(algorithm, reviews, rows[:size])
        try:
            models.append(fitted(algorithm, *seen, rng, previous))
        except FitSkipped:
            if size == len(rows):
                raise
        else:
            begins.append(int(rows[size - 1]) + 1 if size else 0)
    return Stages(algorithm, tuple(models), tuple(begins))
