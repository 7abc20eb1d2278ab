"""Simulated users, whose true probability of recall is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any

import numpy as np
import pandas as pd
from annotated_types import Ge, Gt, Le
from pydantic import Strict, StringConstraints

from srs_eval.data.options import check_options
from srs_eval.data.reviews import Reviews, User
from srs_eval.data.schema import reviews_from_columns
from srs_eval.data.simulated.cards import (
    Cards,
    draw_duration,
    draw_rating,
    learn,
    next_reviews,
    recall_of,
)
from srs_eval.data.simulated.life import Life
from srs_eval.data.simulated.people import Learner, draw_later_reviews
from srs_eval.data.simulated.scheduler import OWN, SCHEDULERS
from srs_eval.errors import ReviewLogError

_MOST_USERS = 1_000_000_000


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

    count: Annotated[int, Strict(), Ge(1), Le(_MOST_USERS)]  # Of users
    seed: Annotated[int, Strict(), Ge(0)]
    size_scale: Annotated[float, Strict(), Gt(0), Le(1)]
    max_reviews: Annotated[int, Strict(), Ge(1)] | None
    scheduler: Annotated[str, StringConstraints(pattern=SCHEDULERS)]

    def __init__(
        self,
        *,
        users: int = 8,
        seed: int = 2026,
        size_scale: float = 0.2,
        max_reviews: int | None = 10_000,
        scheduler: str = OWN,
    ) -> None:
        arguments = users, seed, size_scale, max_reviews, scheduler
        for field, value in zip(fields(self), arguments, strict=True):
            object.__setattr__(self, field.name, value)
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
        source = f"{self.location}, user {user}"
        return reviews_from_columns(user=user, source=source, **answers)


def _simulated(learner: Learner, rng: np.random.Generator) -> dict[str, Any]:
    """Simulate one user until they have made their reviews.

    Cards do not influence one another, so they are simulated in groups until there are enough
    reviews; then the log ends with the last review that was asked for. Answers are in the order the
    questions were shown, with exactly ``learner.later_reviews`` reviews on a later day than the one
    before. Days count from 0, and cards in the order in which they come up first.
    """
    life = Life(learner, rng)
    waves: list[dict[str, Any]] = []
    cards, reviews = 0, 0
    while reviews < learner.later_reviews:
        missing = learner.later_reviews - reviews
        # The number of further cards is estimated from the cards so far; the first few are a guess.
        extra = 1.03 * missing * cards / reviews if reviews else missing / 12
        count = int(extra) + 24
        group = _study(Cards(cards, count, life), life)
        reviews += sum(int(np.sum(wave["elapsed_days"] > 0)) for wave in group)
        cards += count
        waves += group
    log = {name: np.concatenate([wave[name] for wave in waves]) for name in waves[0]}
    # Two cards may come up in the same instant; the card number then decides.
    order = np.lexsort((log["card"], log.pop("second")))
    end = np.searchsorted(np.cumsum(log["elapsed_days"][order] > 0), learner.later_reviews)
    log = {name: column[order[: end + 1]] for name, column in log.items()}
    return {**log, "card": pd.factorize(log["card"])[0], "day": log["day"] - log["day"][0]}


def _study(cards: Cards, life: Life) -> list[dict[str, Any]]:
    """Follow cards through the whole life, one wave of answers for each k.

    Columns are as in `Reviews`, with the `second` from the first day change to the question.
    """
    waves: list[dict[str, Any]] = []
    while len(cards.card):
        moment = life.moment(cards.slot, cards.second)
        truth, odds, ease = recall_of(cards, moment, life)
        recalled = life.rng.random(len(cards.card)) < truth
        rating = draw_rating(cards, recalled, odds, life)
        duration_ms = draw_duration(cards, rating, ease, moment, life)
        # Whole seconds from answer to answer, so that without its time an answer ends the interval.
        until_answer = np.rint(np.floor(cards.second - cards.answered) + duration_ms / 1000)
        wave = {
            "card": cards.card,
            "day": cards.day,
            "second": cards.second,
            "rating": rating,
            "elapsed_days": np.where(cards.new, -1, cards.day - cards.last_day),
            "elapsed_seconds": np.where(cards.new, -1, until_answer),
            "duration_ms": duration_ms,
            "state": cards.state,
            "truth": truth,
            "deck": life.deck_of_cohort[cards.cohort],
        }
        learn(cards, rating, odds, life)
        next_reviews(cards, rating, duration_ms, life)
        waves.append(wave)
    return waves
