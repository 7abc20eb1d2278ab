"""Simulated users, whose true probability of recall is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from annotated_types import Ge, Gt, Le
from pydantic import Strict

from srs_eval.data.options import check_options
from srs_eval.data.reviews import Reviews, User
from srs_eval.data.schema import reviews_from_columns
from srs_eval.data.simulated.cards import simulated
from srs_eval.data.simulated.people import Learner
from srs_eval.errors import ReviewLogError


class SyntheticUsers:
    """Any number of simulated users, each generated when it is read.

    A user of a seed has the same log whichever other users are read, in any
    order and on any machine. `docs/synthetic.md` says how they study and remember.

    Parameters
    ----------
    users : int
        How many, from 1 to a billion; they are named 1, 2, ... `users`.
    seed : int
        Not negative; another seed makes other people.
    size_scale : float
        Size of the logs against those of real users. 1 draws from the percentiles that the
        public srs-benchmark publishes: median 12,500 scored reviews, mean 35,000, and about
        twice as many rows in the log. With both defaults the 8 users have 40,000 rows or so.
    max_reviews : int, optional
        Rows of a log at most: it ends there. None for no bound, which the published sizes
        need.

    Raises
    ------
    ConfigError
        If an argument is out of range.

    Examples
    --------
    >>> source = SyntheticUsers(users=2, max_reviews=100)
    >>> source.users()
    range(1, 3)
    >>> log = source.read(2)
    >>> len(log), log.truth is None
    (100, False)
    """

    count: Annotated[int, Strict(), Ge(1), Le(1_000_000_000)]  # Of users
    seed: Annotated[int, Strict(), Ge(0)]
    size_scale: Annotated[float, Strict(), Gt(0), Le(1)]
    max_reviews: Annotated[int, Strict(), Ge(1)] | None

    def __init__(
        self,
        *,
        users: int = 8,
        seed: int = 2026,
        size_scale: float = 0.2,
        max_reviews: int | None = 10_000,
    ) -> None:
        self.count, self.seed = users, seed
        self.size_scale, self.max_reviews = size_scale, max_reviews
        check_options(self, count="users")

    @property
    def name(self) -> str:
        """``synthetic``."""
        return "synthetic"

    @property
    def location(self) -> str:
        """What is simulated, in words."""
        people = "1 simulated user" if self.count == 1 else f"{self.count:,} simulated users"
        bound = "" if self.max_reviews is None else f", at most {self.max_reviews:,} reviews each"
        return f"{people} (seed {self.seed}, size x {self.size_scale:g}{bound})"

    def users(self) -> Sequence[User]:
        """Return the names of the users, from 1 on."""
        return range(1, self.count + 1)

    def read(self, user: User) -> Reviews:
        """Simulate one user's log; raise `ReviewLogError` if there is no such user."""
        if not isinstance(user, int) or user not in self.users():
            what = f"there is no user {user!r}; they are numbered from 1 to {self.count}"
            raise ReviewLogError(self.location, [what], "Ask for more with data.users=N.")
        # Random numbers of one user, unrelated to those of any other.
        seeds = np.random.SeedSequence([self.seed, user])
        rng = np.random.Generator(np.random.PCG64(seeds))
        log = simulated(Learner(rng, self.size_scale, self.max_reviews), rng)
        answers = {name: column[: self.max_reviews] for name, column in log.items()}
        return reviews_from_columns(user=user, source=f"{self.location}, user {user}", **answers)
