"""An algorithm that has learned from other users, anew for each fold of users."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass

import numpy as np

from srs_eval.algorithms.algorithm import Algorithm, MemoryModel, Pretrainable
from srs_eval.algorithms.combined.wrapping import Combined
from srs_eval.algorithms.recurrent.weights import TrainingLog
from srs_eval.data.reviews import IntArray, Reviews, User
from srs_eval.errors import ConfigError


@dataclass(frozen=True, slots=True)
class CrossFitted(Combined):
    """An algorithm for each fold of users, learned from the users of the other folds."""

    algorithms: tuple[Algorithm, ...]  # By fold
    fold_of: Mapping[User, int]

    @property
    def combined(self) -> tuple[Algorithm, ...]:
        return self.algorithms

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> MemoryModel:
        """Fit the algorithm that has not learned from this user."""
        return self.algorithms[self.fold_of[reviews.user]].fit(reviews, rows, rng)


def cross_fitted(
    algorithm: Pretrainable,
    fold_of: Mapping[User, int],
    lessons: Callable[[Sequence[User]], Iterable[TrainingLog]],
    seed: int,
) -> CrossFitted:
    """Pretrain an algorithm once for each fold, on the users of the other folds.

    `lessons` reads the logs of some users, with the rows to learn from. Raise `ConfigError` if the
    algorithm is to start from given weights, which would have no effect.
    """
    if algorithm.weights not in (None, "auto"):  # none, or those that come with the algorithm
        raise ConfigError(
            f"algo.weights={algorithm.weights} has no effect with user_folds, where weights are "
            "learned for each fold: leave one of them out"
        )
    algorithms = [
        deepcopy(algorithm).pretrain(
            lessons([user for user, own in fold_of.items() if own != fold]),
            np.random.default_rng((seed, fold)),
        )
        for fold in sorted(set(fold_of.values()))
    ]
    return CrossFitted(tuple(algorithms), dict(fold_of))
