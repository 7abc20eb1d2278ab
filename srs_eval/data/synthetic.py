"""Simulated users, whose true probability of recall is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from srs_eval.data.schema import reviews_from_columns
from srs_eval.data.simulated.calendar import Calendar
from srs_eval.data.simulated.cards import (
    Cards,
    Life,
    draw_duration,
    draw_rating,
    learn,
    next_reviews,
    recall_of,
)
from srs_eval.data.simulated.learner import Learner, draw_later_reviews
from srs_eval.data.simulated.scheduler import OWN, SCHEDULERS, is_scheduler
from srs_eval.errors import ConfigError, ReviewLogError
from srs_eval.nouns import IntArray, Reviews, User

_MOST_USERS = 1_000_000_000
_FIRST_CARDS = 24
_SPARE = 1.03
# Of the answers of one user, by name: as in `Reviews`, and the `second` from the user's first day
# change to the question
_Log = dict[str, Any]


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
        if not isinstance(user, int) or user not in self.users():
            what = f"there is no user {user!r}; they are numbered from 1 to {self.count}"
            raise ReviewLogError(self.location, [what], "Ask for more with data.users=N.")
        # Random numbers of one user, unrelated to those of any other.
        seeds = np.random.SeedSequence([self.seed, user])
        rng = np.random.Generator(np.random.PCG64(seeds))
        later_reviews = draw_later_reviews(rng, self.size_scale, self.max_reviews)
        log = _simulated(Learner(later_reviews, rng, self.scheduler), rng)
        answers = {name: column[: self.max_reviews] for name, column in log.items()}
        del answers["second"]
        source = f"{self.location}, user {user}"
        return reviews_from_columns(user=user, source=source, **answers)


def _simulated(learner: Learner, rng: np.random.Generator) -> _Log:
    """Simulate one user until they have made their reviews.

    Cards do not influence one another, so they are simulated in groups until there are enough
    reviews; then the log ends with the last review that was asked for. Answers are in the order the
    questions were shown, with exactly ``learner.later_reviews`` reviews on a later day than the one
    before. Days and cards count from 0.
    """
    life = Life(learner, Calendar(learner, rng), rng)
    groups: list[_Log] = []
    cards, reviews = 0, 0
    while reviews < learner.later_reviews:
        missing = learner.later_reviews - reviews
        # The number of further cards is estimated from the cards so far; the first few are a guess.
        more = _SPARE * missing * cards / reviews if reviews else missing / 12
        count = int(more) + _FIRST_CARDS
        group = _study(Cards(cards, count, life), life)
        reviews += int(np.count_nonzero(group["elapsed_days"] > 0))
        cards += count
        groups.append(group)
    return _in_order(_joined(groups), learner.later_reviews)


def _study(cards: Cards, life: Life) -> _Log:
    """Follow cards through the whole life, one wave of answers for each k."""
    calendar, waves = life.calendar, []
    while len(cards.card):
        moment = calendar.moment(cards.slot, cards.second)
        recall = recall_of(cards, moment, life)
        recalled = life.rng.random(len(cards.card)) < recall.truth
        rating = draw_rating(cards, recalled, recall.odds, life)
        duration_ms = draw_duration(cards, rating, recall.ease, moment, life)
        # Whole seconds from answer to answer, so that without its time an answer ends the interval.
        until_answer = np.rint(np.floor(cards.second - cards.answered) + duration_ms / 1000)
        wave: _Log = {
            "card": cards.card,
            "day": cards.day,
            "second": cards.second,
            "rating": rating,
            "elapsed_days": np.where(cards.new, -1, cards.day - cards.last_day),
            "elapsed_seconds": np.where(cards.new, -1, until_answer),
            "duration_ms": duration_ms,
            "state": cards.state,
            "truth": recall.truth,
            "deck": calendar.deck_of_cohort[cards.cohort],
        }
        learn(cards, rating, recall.odds, life)
        next_reviews(cards, rating, duration_ms, life)
        waves.append(wave)
    return _joined(waves)


def _joined(parts: list[_Log]) -> _Log:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _in_order(column: _Log, later_reviews: int) -> _Log:
    """Sort the answers by time, stop at the last one needed, and number what is left from 0."""
    order = np.argsort(column["second"])
    if (np.diff(column["second"][order]) == 0).any():
        # Two cards may come up in the same instant; the card number then decides.
        order = np.lexsort((column["card"], column["second"]))
    needed = np.searchsorted(np.cumsum(column["elapsed_days"][order] > 0), later_reviews)
    kept = order[: needed + 1]
    column = {name: values[kept] for name, values in column.items()}
    column["card"] = _by_appearance(column["card"])
    column["day"] = column["day"] - column["day"][0]
    return column


def _by_appearance(card: IntArray) -> IntArray:
    """Return card numbers from 0 in order of first review.

    >>> _by_appearance(np.array([7, 2, 7, 5])).tolist()
    [0, 1, 0, 2]
    """
    first = np.full(card.max() + 1, len(card))
    first[card[::-1]] = np.arange(len(card))[::-1]
    number = np.empty(len(first), np.int64)
    number[np.argsort(first, kind="stable")] = np.arange(len(first))
    return number[card]


def _out_of_range(users: int, seed: int, size_scale: float, max_reviews: int | None) -> list[str]:
    """Return the errors in the arguments, one line each."""
    wrong = []
    if not _is_whole(users) or not 1 <= users <= _MOST_USERS:
        wrong.append(f"data.users={users!r}: expected a whole number from 1 to {_MOST_USERS:,}")
    if not _is_whole(seed) or seed < 0:
        wrong.append(f"data.seed={seed!r}: expected a whole number, 0 or more")
    is_real = _is_whole(size_scale) or isinstance(size_scale, float)
    if not is_real or not 0 < size_scale <= 1:
        wrong.append(f"data.size_scale={size_scale!r}: expected a number above 0, up to 1")
    if max_reviews is not None and (not _is_whole(max_reviews) or max_reviews < 1):
        wrong.append(f"data.max_reviews={max_reviews!r}: expected a whole number above 0, or null")
    return wrong


def _is_whole(value: object) -> bool:
    """Whether a value is an int, which True and False are not meant to be."""
    return isinstance(value, int) and not isinstance(value, bool)
