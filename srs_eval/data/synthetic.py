"""Simulated users, whose true probability of recall is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from srs_eval.data.schema import reviews_from_columns
from srs_eval.data.simulated.learner import draw_later_reviews, draw_learner
from srs_eval.data.simulated.log import Answers, simulate_log
from srs_eval.data.simulated.scheduler import OWN, SCHEDULERS, is_scheduler
from srs_eval.errors import ConfigError, ReviewLogError
from srs_eval.nouns import IntArray, Reviews, User

# Of the people: those of releases up to 0.2.0 were 1 to 3.
VERSION = "4"
_MOST_USERS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class DrawnIntervals:
    """Intervals that an app drew by lot: a table beside a log, which no model can read."""

    row: IntArray  # [n]: Row of the log whose answer got the interval, ascending
    days: IntArray  # [n]
    # [n]: The shortest and the longest possible; all from one to the other were as likely
    low: IntArray
    high: IntArray


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
    scheduler: str

    def __init__(
        self,
        *,
        users: int = 8,
        seed: int = 2026,
        size_scale: float = 0.2,
        max_reviews: int | None = 10_000,
        scheduler: str = OWN,
    ) -> None:
        wrong = _out_of_range(users, seed, size_scale, max_reviews)
        if not is_scheduler(scheduler):
            wrong.append(f"data.scheduler={scheduler!r}: expected {SCHEDULERS}")
        if wrong:
            raise ConfigError("\n".join(wrong))
        object.__setattr__(self, "count", users)
        object.__setattr__(self, "seed", seed)
        object.__setattr__(self, "size_scale", float(size_scale))
        object.__setattr__(self, "max_reviews", max_reviews)
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
        app = "" if self.scheduler == OWN else f"scheduler {self.scheduler}, "
        return f"{people} ({app}seed {self.seed}, size x {self.size_scale:g}{bound})"

    def users(self) -> Sequence[User]:
        """Return the names of the users, from 1 on."""
        return range(1, self.count + 1)

    def read(self, user: User) -> Reviews:
        """Simulate one user's log; raise `ReviewLogError` if there is no such user."""
        return self.read_with_intervals(user)[0]

    def read_with_intervals(self, user: User) -> tuple[Reviews, DrawnIntervals]:
        """Simulate one user's log, and return the intervals that the app drew beside it."""
        if not isinstance(user, int) or user not in self.users():
            what = f"there is no user {user!r}; they are numbered from 1 to {self.count}"
            raise ReviewLogError(self.location, [what], "Ask for more with data.users=N.")
        rng = self._generator(user)
        later_reviews = draw_later_reviews(rng, self.size_scale, self.max_reviews)
        learner = draw_learner(later_reviews, rng, self.scheduler)
        answers = simulate_log(learner, rng)
        kept = slice(self.max_reviews)
        reviews = reviews_from_columns(
            user=user,
            source=f"{self.location}, user {user}",
            card=answers.card[kept],
            rating=answers.rating[kept],
            day=answers.day[kept],
            elapsed_days=answers.elapsed_days[kept],
            elapsed_seconds=answers.elapsed_seconds[kept],
            duration_ms=answers.duration_ms[kept],
            state=answers.state[kept],
            truth=answers.truth[kept],
            deck=answers.deck[kept],
        )
        return reviews, _drawn(answers, kept)

    def _generator(self, user: int) -> np.random.Generator:
        """Random numbers of one user, unrelated to those of any other."""
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence([self.seed, user])))


def _drawn(answers: Answers, kept: slice) -> DrawnIntervals:
    """Return the intervals drawn after the answers that are kept."""
    (row,) = answers.drawn[kept].nonzero()
    return DrawnIntervals(row, answers.drawn[row], answers.low[row], answers.high[row])


def _out_of_range(users: int, seed: int, size_scale: float, max_reviews: int | None) -> list[str]:
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
    return wrong


def _is_whole(value: object) -> bool:
    """Whether a value is an int, which True and False are not meant to be."""
    return isinstance(value, int) and not isinstance(value, bool)


def _is_real(value: object) -> bool:
    """Whether a value is an int or a float, which True and False are not meant to be."""
    return isinstance(value, int | float) and not isinstance(value, bool)
