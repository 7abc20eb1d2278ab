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
_DAYS_LATER = 1 / 12


def under_new_name(reviews: Reviews) -> Reviews:
    """Return the log under the name of a new user."""
    return replace(reviews, user=secrets.randbits(32))


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

    Those are ratings and answer times. On a clock of fractional days, elapsed times contain the
    answer times of reviews in between. `slowly` is whether all answers take long, or none does; by
    default each as it comes.
    """
    columns = {name: column.copy() for name, column in columns_of(reviews).items()}
    columns["rating"][rows] = np.where(recalled, rng.choice([3, 4], len(rows)), 1)
    share = rng.random(len(rows)) if slowly is None else (rng.random(len(rows)) + slowly) / 2
    if "duration_ms" in columns:
        columns["duration_ms"][rows] = _SHORTEST_MS * _LONGEST_OVER_SHORTEST**share
    if not reviews.whole_days:
        # The first of them was asked for before anything was answered otherwise.
        is_later = columns["elapsed"][rows[1:]] > 0
        columns["elapsed"][rows[1:]] += is_later * share[1:] * _DAYS_LATER
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
    columns = columns_of(reviews)  # which are copies already
    card, day = columns["card"], columns["day"]
    latest, seen = card[begin - 1], np.unique(card[:begin])
    others = seen[seen != latest]
    card[after] = rng.choice(others if len(others) else seen, len(after))
    if hard:
        card[after[::2]] = latest
    since = np.cumsum(np.ones_like(after) if hard else rng.integers(3, 9, len(after)))
    day[after] = day[begin - 1] + since
    gap = day[after] - day[rows_by_card(card).previous()[after]]
    columns["elapsed_days"][after] = gap
    fraction = 0.0 if reviews.whole_days else rng.uniform(-0.4, 0.4, len(after))
    columns["elapsed"][after] = gap + fraction
    columns["row"][after] = columns["row"][begin - 1] + since
    if "state" in columns:
        columns["state"][after] = 3 if hard else 2
    for name in set(GROUPS) & set(columns):
        before = columns[name][:begin]
        columns[name][after] = before.min() if hard else before.max()
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
    share, factual = rng.uniform(0.1, 0.9, len(rows)), reviews.elapsed[rows]
    return np.column_stack((factual * share, factual, factual / share))
