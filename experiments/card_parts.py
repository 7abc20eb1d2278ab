"""Small logs from large ones: their first reviews, or disjoint parts of their cards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from srs_eval.nouns import Reviews, Source, User


@dataclass(frozen=True)
class CardParts:
    """The users of a source, each cut into parts with equally many cards, drawn at random.

    Parts of one user share the person, and say nothing of other people.
    """

    source: Source
    parts: int
    seed: int = 2026

    @property
    def name(self) -> str:
        """Name of the source, with the number of parts."""
        return f"{self.source.name} in {self.parts} parts"

    @property
    def location(self) -> str:
        """Where the whole logs are."""
        return self.source.location

    def users(self) -> tuple[User, ...]:
        """Return the parts of all users."""
        numbers = range(1, self.parts + 1)
        return tuple(f"{user}/{number}" for user in self.source.users() for number in numbers)

    def read(self, user: User) -> Reviews:
        """Read one part of a log."""
        name, _, number = str(user).rpartition("/")
        whole = next(each for each in self.source.users() if str(each) == name)
        log = self.source.read(whole)
        cards = np.random.default_rng(self.seed).permutation(np.unique(log.card))
        own = np.isin(log.card, cards[int(number) - 1 :: self.parts])
        return replace(log.take(own), user=user)


@dataclass(frozen=True)
class FirstReviews:
    """The first reviews of the users who have so many, kept in memory."""

    logs: Mapping[User, Reviews]
    size: int
    name: str = "first reviews"
    location: str = "memory"

    def users(self) -> Sequence[User]:
        """Return the users who have so many reviews."""
        return [user for user, log in self.logs.items() if len(log) >= self.size]

    def read(self, user: User) -> Reviews:
        """Return the beginning of one log."""
        return self.logs[user].take(np.arange(self.size))
