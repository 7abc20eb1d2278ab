"""Small review logs, invented or of golden histories, and models of given outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from srs_eval.algorithms.algorithm import Algorithm
from srs_eval.algorithms.baselines import Average
from srs_eval.data.reviews import Reviews, User
from srs_eval.data.schema import reviews_from_columns


@dataclass(frozen=True)
class Logs:
    """A source that already has the logs in memory."""

    logs: Mapping[User, Reviews]
    name: str = "logs"
    location: str = "logs in memory"

    def users(self):
        return list(self.logs)

    def read(self, user):
        return self.logs[user]


@dataclass(frozen=True)
class Told:
    """A model that predicts what it was told to, and tells how it was fitted."""

    p: Any = 0.5
    parameters: Any = ()
    learned: Any = None

    def predict(self, reviews, rows):
        return self.p(rows) if callable(self.p) else np.full(len(rows), self.p)


class Ends(Algorithm):
    """Average, but fits of some users, in one fold or in all, return or raise what is given."""

    def __init__(self, outcome, *, users=None, fold=None):
        self.outcome, self.users, self.fold = outcome, users, fold
        self.fits = Counter[User]()

    def fit(self, reviews, rows, rng):
        user = reviews.user
        self.fits[user] += 1
        is_other = self.users is not None and user not in self.users
        if is_other or self.fold not in (None, self.fits[user] - 1):
            return Average().fit(reviews, rows, rng)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


class FailsForSome(Algorithm):
    """Predicts 0.9, but fails for users whose number of reviews leaves 1 when divided by 16."""

    def fit(self, reviews, rows, rng):
        if len(reviews.card) % 16 == 1:
            raise ValueError("no fit for this user")
        return Told(0.9, parameters=(0.9,))


def invented_log(
    *,
    seed=0,
    user=1,
    cards=60,
    reviews_per_card=8,
    intervals=(1, 1, 1, 2, 3, 7),
    same_day=0.2,
    recall=0.85,
    easy=0.1,
    first_days=30,
):
    """Invent a log in time order, of cards that are first seen within `first_days`.

    Each further interval is 0 with probability `same_day`, else one of `intervals`. The public
    protocol scores nothing of a log with much fewer cards: all its first intervals are rare.
    """
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, reviews_per_card + 1, cards)
    lengths[0] = reviews_per_card
    card = np.repeat(np.arange(cards), lengths)
    gap = rng.choice(intervals, len(card)) * (rng.random(len(card)) >= same_day)
    begins = np.r_[0, np.cumsum(lengths)[:-1]]
    gap[begins] = rng.integers(0, first_days, cards)
    total = np.cumsum(gap)
    day = total - np.repeat(total[begins] - gap[begins], lengths)
    is_pass, passes = rng.random(len(card)) < recall, [0.1, 0.9 - easy, easy]
    rating = np.where(is_pass, rng.choice([2, 3, 4], len(card), p=passes), 1)
    in_time = np.argsort(day, kind="stable")
    columns = {"card": 100 + card, "rating": rating, "day": day}
    columns = {name: column[in_time] for name, column in columns.items()}
    return reviews_from_columns(user=user, source="invented", **columns)


def of_presets(logs):
    """Return a table of one learner who has the cards of each log in a preset of that name."""
    frames = [
        pd.DataFrame(
            {name: getattr(log, name) for name in ("day", "rating", "elapsed_days")}
        ).assign(card=log.card + 1_000_000 * number, preset=preset)
        for number, (preset, log) in enumerate(logs.items())
    ]
    return pd.concat(frames).sort_values("day", kind="stable")


def log_of(card, day, **columns):
    """Build a log whose reviews are Good, unless ratings are given."""
    columns = {"rating": [3] * len(card), **columns}
    return reviews_from_columns(user="ann", source="log", card=card, day=day, **columns)


def timed(log, *, seed=0, hasty=0.1):
    """Add to each review whole seconds since the answer before and a duration.

    A share `hasty` of the same-day reviews comes within few seconds, down to none.
    """
    rng = np.random.default_rng(seed)
    n = len(log)
    within = np.where(rng.random(n) < hasty, rng.integers(0, 4, n), rng.integers(60, 30_000, n))
    seconds = np.where(log.elapsed_days > 0, log.elapsed_days * 86_400, 0) + within
    return replace(
        log,
        elapsed_seconds=np.where(log.elapsed_days < 0, -1.0, seconds.astype(np.float64)),
        duration_ms=rng.integers(0, 30_000, n).astype(np.float64),
    )


def log_of_all_histories(golden, interval):
    """One user whose cards are the golden histories, their reviews shuffled into each other."""
    histories = golden["histories"]
    n = [len(history["rating"]) for history in histories]
    nth = np.concatenate([np.arange(length) for length in n])
    day = np.concatenate([history["elapsed_days"] for history in histories])
    seconds = np.concatenate([history["elapsed_seconds"] for history in histories])
    reviews = Reviews(
        user=1,
        card=np.repeat([history["id"] for history in histories], n),
        day=np.zeros(len(nth), np.int64),
        rating=np.concatenate([history["rating"] for history in histories]),
        elapsed_days=np.where(nth == 0, -1, day),
        elapsed=day.astype(float) if interval == "days" else seconds / 86400,
        row=np.arange(len(nth)),
        duration_ms=1000.0 + (37 * nth) % 11 * 900,
    )
    together = np.lexsort((np.random.default_rng(1).random(len(nth)), nth))
    return reviews.take(together), nth[together]
