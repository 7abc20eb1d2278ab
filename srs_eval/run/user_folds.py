"""Learning from the users of other folds, where a protocol divides users into folds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from srs_eval.algorithms.combined.cross_fitted import cross_fitted
from srs_eval.errors import FitSkipped, ReviewLogError
from srs_eval.nouns import (
    Algorithm,
    EvaluationProtocol,
    IntArray,
    Pretrainable,
    Reviews,
    Source,
    User,
)
from srs_eval.protocol.user_folds import UserFolds
from srs_eval.run.experiment import Experiment, checked_users


def learns_from_other_users(experiment: Experiment) -> bool:
    """Whether the algorithm is pretrained for each fold of users."""
    has_folds = isinstance(experiment.protocol, UserFolds)
    return has_folds and isinstance(experiment.algorithm, Pretrainable)


def with_user_folds(experiment: Experiment) -> Experiment:
    """Return an experiment whose algorithm has learned from the users of the other folds.

    That of another protocol, or of an algorithm that cannot be pretrained, is returned as it is.
    """
    algorithm, protocol, source = experiment.algorithm, experiment.protocol, experiment.source
    if not isinstance(protocol, UserFolds) or not isinstance(algorithm, Pretrainable):
        return experiment

    def read(users: Sequence[User]) -> Iterator[tuple[Reviews, IntArray]]:
        return lessons(algorithm, source, protocol, users)

    fold_of = protocol.fold_of(checked_users(source))
    learned = cross_fitted(algorithm, fold_of, read, experiment.seed)
    return replace(experiment, algorithm=cast(Algorithm, learned))


def lessons(
    algorithm: Algorithm,
    source: Source,
    protocol: EvaluationProtocol,
    users: Sequence[User],
    left_out: Callable[[str], None] = lambda reason: None,
) -> Iterator[tuple[Reviews, IntArray]]:
    """Read the log of each user, and return the rows to learn from: all candidates.

    Of users without any, `left_out` is told why.
    """
    for user in users:
        try:
            task = protocol(source.read(user), same_day=algorithm.same_day)
        except (FitSkipped, ReviewLogError) as reason:
            left_out(f"user {user} is left out: {reason}")
            continue
        last = task.folds[-1]
        yield task.reviews, np.concatenate([last.train, last.test])
