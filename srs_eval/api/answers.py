"""Logs of made-up cards, to ask a model about intervals after given answers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from srs_eval.api.intervals import next_intervals
from srs_eval.cards import with_next_reviews
from srs_eval.nouns import IntArray, MemoryModel, Reviews, Vector


def answered_on_time(
    model: MemoryModel,
    histories: Sequence[Sequence[int]],
    retention: float | Vector = 0.9,
    preset: Sequence[int] | None = None,
) -> tuple[Reviews, IntArray]:
    """Return a log with a card for each history of ratings, and the row of each card's next review.

    Each answer but the first is given after the interval of `model`, in whole days, at least one
    and at most 100 years. `preset` is that of each card.
    """
    wanted = np.broadcast_to(np.asarray(retention, np.float64), len(histories))
    gaps = [[-1] for _ in histories]
    while True:
        reviews, rows = with_next_reviews(_log(histories, gaps, preset))
        rows = rows[np.argsort(reviews.card[rows])]
        open_cards = [n for n, own in enumerate(gaps) if len(own) < len(histories[n])]
        if not open_cards:
            return reviews, rows
        days = next_intervals(model, reviews, rows, wanted)
        for card in open_cards:
            gaps[card].append(int(np.clip(np.rint(days[card]), 1, 36500)))


def _log(
    histories: Sequence[Sequence[int]], gaps: Sequence[Sequence[int]], preset: Sequence[int] | None
) -> Reviews:
    """Return the log of the answers whose intervals are known."""
    sizes = [len(own) for own in gaps]
    card = np.repeat(np.arange(len(gaps)), sizes)
    rating = np.concatenate([h[:n] for h, n in zip(histories, sizes, strict=True)])
    gap = np.concatenate(gaps)
    day = np.concatenate([np.cumsum([0, *own[1:]]) for own in gaps])
    order = np.argsort(day, kind="stable")
    return Reviews(
        user="made up",
        card=card,
        day=day,
        rating=rating,
        elapsed_days=gap,
        elapsed=np.maximum(gap, 0).astype(np.float64),
        row=np.arange(len(card)),
        preset=None if preset is None else np.asarray(preset)[card],
    ).take(order)
