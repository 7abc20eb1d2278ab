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
from srs_eval.data.reviews import GROUPS, BoolArray, FloatArray, IntArray, Reviews, columns_of

# Other answer times reach further than invented ones, so that a threshold is crossed.
_SHORTEST_MS, _LONGEST_OVER_SHORTEST = 100.0, 1000.0
_SECONDS_LATER, _DAY = 7200.0, 86400.0
_NAMES = 10**9


def under_new_name(reviews: Reviews) -> Reviews:
    """Return the log under the name of a new user."""
    return replace(reviews, user=secrets.randbelow(_NAMES))


def cut_after(reviews: Reviews, row: int) -> Reviews:
    """Copy a log up to and including a row, under a new name."""
    return under_new_name(reviews.take(np.arange(row + 1)))


def other_answers(
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
    return under_new_name(replace(reviews, **columns))


def other_future(
    reviews: Reviews, recalled: BoolArray, rng: np.random.Generator, *, hard: bool
) -> Reviews:
    """Return the log of a new user with another future; a hard one differs from an easy one.

    `recalled` are the outcomes of the last reviews. After the first of them other cards are
    asked for on other days, as their columns then say: in a hard future the card before it again
    and again, otherwise never, and later. Cards are taken from those that were seen before, so that
    no row becomes the first of a card.
    """
    answers = np.arange(len(reviews) - len(recalled), len(reviews))
    reviews = other_answers(reviews, answers, recalled, rng, slowly=hard)
    after, begin = answers[1:], int(answers[0]) + 1
    if not len(after):
        return reviews
    columns = columns_of(reviews)  # which are copies already
    card, day = columns["card"], columns["day"]
    latest, seen = card[begin - 1], np.unique(card[:begin])
    card[after] = rng.choice(seen[seen != latest] if len(seen) > 1 else seen, len(after))
    if hard:
        card[after[::2]] = latest
    step = rng.integers(1, 2, len(after)) if hard else rng.integers(3, 9, len(after))
    day[after] = day[begin - 1] + np.cumsum(step)
    gap = day[after] - day[rows_by_card(card).previous()[after]]
    columns["elapsed_days"][after] = gap
    fraction = 0.0 if reviews.whole_days else rng.uniform(-0.4, 0.4, len(after))
    columns["elapsed"][after] = gap + fraction
    columns["row"][after] += 0 if hard else 3 * np.arange(1, len(after) + 1)
    if "elapsed_seconds" in columns:
        columns["elapsed_seconds"][after] = gap * _DAY + rng.uniform(1, _SECONDS_LATER, len(gap))
    if "state" in columns:
        columns["state"][after] = 3 if hard else 2
    for name in set(GROUPS) & set(columns):
        first, last = columns[name][:begin].min(), columns[name][:begin].max()
        columns[name][after] = first if hard else last + (first == last)
    return under_new_name(replace(reviews, **columns))


def twice(reviews: Reviews) -> Reviews:
    """Return the log of a new user, repeated once with other cards."""
    columns: dict[str, Any] = {name: np.tile(x, 2) for name, x in columns_of(reviews).items()}
    for name in ("day", "card", "row"):
        x = getattr(reviews, name)
        columns[name][len(x) :] += x.max() - x.min() + 1
    return under_new_name(replace(reviews, **columns))


def other_times(reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> FloatArray:
    """Draw an earlier and a later time for each row; the factual one is in between."""
    earlier, later = rng.uniform(0.1, 0.9, len(rows)), rng.uniform(1.1, 9.0, len(rows))
    elapsed: FloatArray = reviews.elapsed[rows, None] * np.c_[earlier, np.ones(len(rows)), later]
    return elapsed
