"""The mean of several algorithms' log-odds of recall.

    cd examples/ensemble
    python -m srs_eval --config-dir conf -m algo=ensemble,fsrs6,dash

A logarithmic opinion pool: Genest & Zidek (1986), https://doi.org/10.1214/ss/1177013825.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, logit

from srs_eval.algorithms.algorithm import (
    WHEN,
    Algorithm,
    MemoryModel,
    When,
    has_curve,
    when_of,
)
from srs_eval.data.reviews import FloatArray, IntArray, Reviews


def seen_by(algorithm: Algorithm, reviews: Reviews, rows: IntArray) -> tuple[Reviews, IntArray]:
    """Remove same-day reviews, as protocols do for algorithms that do not read them."""
    if algorithm.same_day or not reviews.whole_days:
        return reviews, rows
    left = np.flatnonzero(reviews.elapsed_days != 0)
    return replace(reviews.take(left), row=np.arange(len(left))), np.searchsorted(left, rows)


def mean(probabilities: Iterable[FloatArray]) -> FloatArray:
    """Average log-odds, none of them beyond 20."""
    return expit(np.mean([np.clip(logit(p), -20, 20) for p in probabilities], axis=0))


@dataclass(frozen=True)
class EnsembleModel:
    """A fitted model of each algorithm."""

    models: tuple[tuple[Algorithm, MemoryModel], ...]
    parameters: tuple[float, ...] = ()

    @property
    def has_curve(self) -> bool:
        """Whether all models have a forgetting curve."""
        return all(has_curve(model) for _, model in self.models)

    def predict(self, reviews: Reviews, rows: IntArray) -> FloatArray:
        """Predict recall at each of `rows`."""
        return mean(model.predict(*seen_by(each, reviews, rows)) for each, model in self.models)

    def predict_at(self, reviews: Reviews, rows: IntArray, elapsed: FloatArray) -> FloatArray:
        """Predict recall at other elapsed times, [rows, k]."""
        return mean(
            model.predict_at(*seen_by(each, reviews, rows), elapsed) for each, model in self.models
        )


@dataclass(frozen=True)
class Ensemble(Algorithm):
    """Algorithms under names of one's own, each fitted by itself."""

    members: Mapping[str, Algorithm]

    @property
    def same_day(self) -> bool:
        """Whether any of the algorithms reads same-day reviews."""
        return any(member.same_day for member in self.members.values())

    @property
    def when(self) -> When:
        """When the last of the predictions is made."""
        return max(map(when_of, self.members.values()), key=WHEN.index)

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> EnsembleModel:
        """Fit all algorithms to `rows`, each to the log that it would be shown alone."""
        rows = np.sort(rows)
        return EnsembleModel(
            tuple(
                (member, member.fit(*seen_by(member, reviews, rows), rng))
                for member in self.members.values()
            )
        )
