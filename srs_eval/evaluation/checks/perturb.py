"""Perturbations of a log: change what a model must not see, to find out whether it moves.

A perturbed log always belongs to a new user, so that whatever an algorithm has kept under the
name of the first user is of no use.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import Any

import numpy as np

from srs_eval.data.cards import rows_by_card
from srs_eval.data.reviews import (
    GROUPS,
    BoolArray,
    IntArray,
    Reviews,
    columns_of,
)

# Tampered answer times reach further than invented ones, so that a threshold is crossed.
_SHORTEST_MS, _LONGEST_OVER_SHORTEST = 100.0, 1000.0
_SECONDS_LATER = 7200.0
_DAY = 86400.0
_NAMES = 10**9


def renamed(reviews: Reviews) -> Reviews:
    """Return the log under the name of a new user."""
    return replace(reviews, user=secrets.randbelow(_NAMES))


def cut_after(reviews: Reviews, row: int) -> Reviews:
    """Copy a log up to and including a row, under a new name."""
    return renamed(reviews.take(np.arange(row + 1)))


def answered(
    reviews: Reviews,
    rows: IntArray,
    recalled: BoolArray,
    rng: np.random.Generator,
    *,
    slowly: bool | None = None,
) -> Reviews:
    """Return the log of a new user with other answers at `rows`, and all that follows from them.

    Those are ratings, answer times, and the seconds from answer to answer, which contain the time
    the later answer took. On a clock of fractional days, elapsed times contain the answer times of
    reviews in between. `slowly` is whether all answers take long, or none does; by default each as
    it comes.
    """
    columns = {name: column.copy() for name, column in columns_of(reviews).items()}
    columns["rating"][rows] = np.where(recalled, rng.choice([3, 4], len(rows)), 1)
    share = rng.random(len(rows)) if slowly is None else (rng.random(len(rows)) + slowly) / 2
    if "duration_ms" in columns:
        columns["duration_ms"][rows] = _SHORTEST_MS * _LONGEST_OVER_SHORTEST**share
    later = 1 + share * _SECONDS_LATER
    if "elapsed_seconds" in columns:
        columns["elapsed_seconds"][rows] += np.where(columns["elapsed_seconds"][rows] < 0, 0, later)
    if not reviews.whole_days:
        # The first of them was asked for before anything was answered otherwise.
        after = np.flatnonzero(columns["elapsed"][rows[1:]] > 0) + 1
        columns["elapsed"][rows[after]] += later[after] / _DAY
    return renamed(replace(reviews, **columns))


def other_future(
    reviews: Reviews, recalled: BoolArray, *, facts_from: int, hard: bool, rng: np.random.Generator
) -> Reviews:
    """Return the log of a new user with another future; a hard one differs from an easy one.

    `recalled` are the outcomes of the last reviews. From the row `facts_from` on other cards are
    asked for on other days, as their columns then say: in a hard future the card before it again
    and again, otherwise never, and later. Cards are taken from those that were seen before, so that
    no row becomes the first of a card.
    """
    answers = np.arange(len(reviews) - len(recalled), len(reviews))
    reviews = answered(reviews, answers, recalled, rng, slowly=hard)
    after = np.arange(facts_from, len(reviews))
    if facts_from == 0 or not len(after):
        return reviews
    columns = columns_of(reviews)  # which are copies already
    card, day = columns["card"], columns["day"]
    latest = card[facts_from - 1]
    seen = np.unique(card[:facts_from])
    others = seen[seen != latest] if len(seen) > 1 else seen
    card[after] = rng.choice(others, len(after))
    if hard:
        card[after[::2]] = latest
    step = 1 if hard else rng.integers(3, 9, len(after))
    day[after] = day[facts_from - 1] + np.cumsum(np.broadcast_to(step, len(after)))
    gap = day[after] - day[rows_by_card(card).previous()[after]]
    columns["elapsed_days"][after] = gap
    fraction = 0.0 if reviews.whole_days else rng.uniform(-0.4, 0.4, len(after))
    columns["elapsed"][after] = gap + fraction
    columns["row"][after] += np.cumsum(np.full(len(after), 0 if hard else 3))
    if "elapsed_seconds" in columns:
        columns["elapsed_seconds"][after] = gap * _DAY + rng.uniform(1, _SECONDS_LATER, len(gap))
    if "state" in columns:
        columns["state"][after] = 3 if hard else 2
    for name in set(GROUPS) & set(columns):
        known = columns[name][:facts_from]
        columns[name][after] = known.min() if hard else known.max() + (known.min() == known.max())
    return renamed(replace(reviews, **columns))


def twice(reviews: Reviews) -> Reviews:
    """Return the log of a new user, repeated once with other cards."""
    once = columns_of(reviews)
    columns: dict[str, Any] = {name: np.tile(column, 2) for name, column in once.items()}
    again = slice(len(reviews), None)
    columns["day"][again] += reviews.day.max() - reviews.day.min() + 1
    columns["card"][again] += reviews.card.max() - reviews.card.min() + 1
    columns["row"][again] += reviews.row.max() + 1
    return renamed(replace(reviews, **columns))
