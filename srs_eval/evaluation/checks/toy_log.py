"""A small simulated log on which algorithms are checked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from srs_eval.data.reviews import Reviews
from srs_eval.data.schema import reviews_from_columns
from srs_eval.protocol.task import Fold, Task

_CARDS = 40
_REVIEWS_PER_CARD = 12
_FIRST_DAYS = 60
_SAME_DAY_SHARE = 0.2
_TRAINING_SHARE = 0.6


def trial_task(*, same_day: bool, seed: int = 0, cards: int = _CARDS) -> Task:
    """Simulate 12 reviews of each of some cards with every column filled, and split them once.

    `same_day` is whether histories keep the reviews made on the day of the review before.
    """
    reviews = _log(np.random.default_rng(seed), cards)
    if not same_day:
        reviews = reviews.take(reviews.elapsed_days != 0)
    log_row = reviews.row
    reviews = replace(reviews, row=np.arange(len(reviews)))
    scored = np.flatnonzero(reviews.elapsed_days > 0)
    begin = int(len(scored) * _TRAINING_SHARE)
    return Task(
        reviews=reviews,
        folds=(Fold(0, train=scored[:begin], test=scored[begin:]),),
        # which no algorithm sees
        nth_review=log_row,
        lapses=log_row,
        log_row=log_row,
    )


def _log(rng: np.random.Generator, cards: int) -> Reviews:
    """Forget exponentially, with a stability that grows with passes and shrinks with lapses.

    Cards are asked for every other day, so that several come in a session, and those of every third
    note, which are siblings, on the same days.
    """
    shape = (_REVIEWS_PER_CARD, cards)
    gap = np.zeros(shape, np.int64)
    truth = np.full(shape, 0.5)
    recalled = np.zeros(shape, bool)
    stability = np.full(cards, 2.0)
    step = np.zeros(shape, np.int64)
    leader = np.arange(cards)  # Card whose days a card has
    leader[1::6] -= 1
    for nth in range(_REVIEWS_PER_CARD):
        if nth > 0:
            later = 2 * np.ceil(stability * rng.lognormal(0.0, 0.6, cards) / 2).astype(np.int64)
            gap[nth] = np.where(rng.random(cards) < _SAME_DAY_SHARE, 0, later)
            gap[nth] = gap[nth, leader]
            step[nth] = np.where(gap[nth] == 0, step[nth - 1] + 1, 0)
            truth[nth] = 0.01 + 0.98 * np.exp(-0.2 * gap[nth] / stability)
        recalled[nth] = rng.random(cards) < truth[nth]
        stability = np.where(recalled[nth], stability * 1.8, np.maximum(stability * 0.4, 0.5))
    first_day = 2 * rng.integers(_FIRST_DAYS // 2, size=cards)
    first_day[::4] += 2 * _FIRST_DAYS  # new cards come as long as others are tested
    day = first_day[leader] + np.cumsum(gap, axis=0)
    position, card = np.indices(shape)
    new = position == 0
    # In one sitting cards that are due come before new ones, and those before second looks.
    in_time = np.lexsort((card.ravel(), new.ravel(), step.ravel(), day.ravel()))
    first, card = new.ravel()[in_time], card.ravel()[in_time]
    passes = rng.choice([2, 3, 4], len(card), p=[0.15, 0.7, 0.15])
    duration_ms = rng.integers(1000, 20000, len(card)).astype(np.float64)
    return reviews_from_columns(
        user="trial",
        source="a small simulated log",
        card=card,
        rating=np.where(recalled.ravel()[in_time], passes, 1),
        day=day.ravel()[in_time],
        elapsed_seconds=np.where(first, -1.0, 86400 * gap.ravel()[in_time] + duration_ms / 500),
        duration_ms=duration_ms,
        state=np.where(first, 0, 2),
        truth=truth.ravel()[in_time],
        deck=card % 3,
        preset=card % 2,
        note_type=card % 2,
        note=card // 2,
    )
