"""Simulated users, whose true probability of recall is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from srs_eval.data.schema import reviews_from_columns
from srs_eval.data.simulated.learner import draw_later_reviews, draw_learner
from srs_eval.data.simulated.log import Answers, simulate_log
from srs_eval.data.simulated.population import POPULATIONS
from srs_eval.data.simulated.scheduler import OWN, SCHEDULERS, is_scheduler
from srs_eval.errors import ConfigError, ReviewLogError
from srs_eval.nouns import FloatArray, Reviews, User

_MOST_USERS = 1_000_000_000
_TO_THE_ANSWER = 3  # first version whose seconds run to the answer


@dataclass(frozen=True, slots=True, init=False)
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
    version : int
        2, or 1 for the users of earlier releases, who have no sessions, cohorts and decks, or 3
        for the users of version 2 with `elapsed_seconds` up to the answer, as in published logs.
    scheduler : str
        What asks for the cards of these people: ``own`` is FSRS-4.5 at a desired retention of each
        person's own, ``fsrs_70`` the same at 70 % for all, ``sm2`` that of Anki, and ``fixed``
        doubles intervals whatever the answers.

    Attributes
    ----------
    count : int
        How many users there are.

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

    count: int
    seed: int
    size_scale: float
    max_reviews: int | None
    version: int
    scheduler: str

    def __init__(
        self,
        *,
        users: int = 8,
        seed: int = 2026,
        size_scale: float = 0.2,
        max_reviews: int | None = 10_000,
        version: int = 2,
        scheduler: str = OWN,
    ) -> None:
        wrong = _out_of_range(users, seed, size_scale, max_reviews, version)
        if not is_scheduler(scheduler):
            wrong.append(f"data.scheduler={scheduler!r}: expected {SCHEDULERS}")
        if wrong:
            raise ConfigError("\n".join(wrong))
        object.__setattr__(self, "count", users)
        object.__setattr__(self, "seed", seed)
        object.__setattr__(self, "size_scale", float(size_scale))
        object.__setattr__(self, "max_reviews", max_reviews)
        object.__setattr__(self, "version", version)
        object.__setattr__(self, "scheduler", scheduler)

    @property
    def name(self) -> str:
        """``synthetic``."""
        return "synthetic"

    @property
    def location(self) -> str:
        """What is simulated, in words."""
        people = "1 simulated user" if self.count == 1 else f"{self.count:,} simulated users"
        bound = "" if self.max_reviews is None else f", at most {self.max_reviews:,} reviews each"
        version = "" if self.version == 1 else f"version {self.version}, "
        app = "" if self.scheduler == OWN else f"scheduler {self.scheduler}, "
        return f"{people} ({version}{app}seed {self.seed}, size x {self.size_scale:g}{bound})"

    def users(self) -> Sequence[User]:
        """Return the names of the users, from 1 on."""
        return range(1, self.count + 1)

    def read(self, user: User) -> Reviews:
        """Simulate one user's log; raise `ReviewLogError` if there is no such user."""
        if not isinstance(user, int) or user not in self.users():
            what = f"there is no user {user!r}; they are numbered from 1 to {self.count}"
            raise ReviewLogError(self.location, [what], "Ask for more with data.users=N.")
        rng = self._generator(user)
        later_reviews = draw_later_reviews(rng, self.size_scale, self.max_reviews)
        learner = draw_learner(later_reviews, POPULATIONS[self.version], rng, self.scheduler)
        answers = simulate_log(learner, rng)
        kept = slice(self.max_reviews)
        return reviews_from_columns(
            user=user,
            source=f"{self.location}, user {user}",
            card=answers.card[kept],
            rating=answers.rating[kept],
            day=answers.day[kept],
            elapsed_days=answers.elapsed_days[kept],
            elapsed_seconds=self._seconds(answers)[kept],
            duration_ms=answers.duration_ms[kept],
            state=answers.state[kept],
            truth=answers.truth[kept],
            deck=answers.deck[kept] if self.version > 1 else None,
        )

    def _seconds(self, answers: Answers) -> FloatArray:
        """Return the seconds since the previous answer, to the question or to the answer."""
        if self.version < _TO_THE_ANSWER:
            return answers.elapsed_seconds
        # Rounded so that a protocol that subtracts the answer time finds the question.
        until_answer = np.rint(answers.elapsed_seconds + answers.duration_ms / 1000)
        return np.where(answers.elapsed_seconds < 0, -1, until_answer)

    def _generator(self, user: int) -> np.random.Generator:
        """Random numbers of one user, unrelated to those of any other."""
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence([self.seed, user])))


def _out_of_range(
    users: int, seed: int, size_scale: float, max_reviews: int | None, version: int
) -> list[str]:
    """Return the errors in the arguments, one line each."""
    wrong = []
    if not _is_whole(users) or not 1 <= users <= _MOST_USERS:
        wrong.append(f"data.users={users!r}: expected a whole number from 1 to {_MOST_USERS:,}")
    if not _is_whole(seed) or seed < 0:
        wrong.append(f"data.seed={seed!r}: expected a whole number, 0 or more")
    if not _is_real(size_scale) or not 0 < size_scale <= 1:
        wrong.append(f"data.size_scale={size_scale!r}: expected a number above 0, up to 1")
    if max_reviews is not None and (not _is_whole(max_reviews) or max_reviews < 1):
        wrong.append(f"data.max_reviews={max_reviews!r}: expected a whole number above 0, or null")
    if not _is_whole(version) or version not in POPULATIONS:
        wrong.append(f"data.version={version!r}: expected 1, 2 or 3")
    return wrong


def _is_whole(value: object) -> bool:
    """Whether a value is an int, which True and False are not meant to be."""
    return isinstance(value, int) and not isinstance(value, bool)


def _is_real(value: object) -> bool:
    """Whether a value is an int or a float, which True and False are not meant to be."""
    return isinstance(value, int | float) and not isinstance(value, bool)
