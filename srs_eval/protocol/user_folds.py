"""Folds of users around another protocol, for models that learn from other users."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Le
from pydantic import Strict

from srs_eval.data.reviews import Reviews, User
from srs_eval.errors import ConfigError
from srs_eval.protocol.srs_benchmark import AroundAnother
from srs_eval.protocol.task import Task


@dataclass(frozen=True)
class UserFolds(AroundAnother):
    """Let an algorithm that can be pretrained learn from the users of all folds but one.

    Users are divided into folds of equal size by a digest of their names, whatever their order.
    An algorithm that is `srs_eval.algorithms.algorithm.Pretrainable` learns once for each fold,
    from all candidate reviews of the users of the other folds, and is then fitted to each user of
    the fold and scored as `base` says. So every user is scored, and none by what was learned from
    them. Other algorithms learn and score as under `base` alone: the scored rows are the same.

    Parameters
    ----------
    base : EvaluationProtocol
        Which rows of each user are scored, and what may be learned before each.
    user_folds : int
        Number of folds, from 2 to 20.
    """

    user_folds: Annotated[int, Strict(), Ge(2), Le(20)] = 2

    @property
    def name(self) -> str:
        """Name of the base, with the number of folds."""
        return f"{self.base.name}_in_{self.user_folds}_user_folds"

    @property
    def is_validation(self) -> bool:
        """Whether the base keeps the rows of the final score apart."""
        return bool(getattr(self.base, "is_validation", False))

    def __call__(self, reviews: Reviews, *, same_day: bool) -> Task:
        """Filter and split one user's log as the base does."""
        return self.base(reviews, same_day=same_day)

    def fold_of(self, users: Sequence[User]) -> dict[User, int]:
        """Return the fold of each user; raise `ConfigError` if a fold would have none.

        >>> sorted(UserFolds().fold_of(range(6)).values())
        [0, 0, 0, 1, 1, 1]
        """
        if len(users) < self.user_folds:
            raise ConfigError(f"user_folds={self.user_folds}: there are only {len(users)} users")
        ranked = sorted(users, key=lambda user: hashlib.sha256(str(user).encode()).digest())
        return {user: rank % self.user_folds for rank, user in enumerate(ranked)}
