"""Logs of several users as one, to learn from before being fitted to another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from srs_eval.errors import ConfigError
from srs_eval.nouns import IntArray, Reviews

# A user's log, and the rows whose outcomes are learned from.
TrainingLog = tuple[Reviews, IntArray]

_COLUMNS = ("day", "rating", "elapsed_days", "elapsed", "row")


def pooled(logs: Sequence[TrainingLog]) -> TrainingLog:
    """Concatenate the logs of many users, with no card in common.

    Raise `ConfigError` if there are none, or some count whole days and others do not.
    """
    if len({reviews.whole_days for reviews, _ in logs}) != 1:
        raise ConfigError("pretraining needs users, all with whole days or all with fractions")
    cards, rows, n_cards, n_reviews = [], [], 0, 0
    for reviews, trained in logs:
        _, card = np.unique(reviews.card, return_inverse=True)
        cards.append(card + n_cards)
        rows.append(trained + n_reviews)
        n_cards += int(card.max(initial=-1)) + 1
        n_reviews += len(reviews)
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(reviews, name) for reviews, _ in logs]) for name in _COLUMNS
    }
    durations = [reviews.duration_ms for reviews, _ in logs]
    known = [duration for duration in durations if duration is not None]
    together = Reviews(
        user="pooled",
        card=np.concatenate(cards),
        whole_days=logs[0][0].whole_days,
        duration_ms=np.concatenate(known) if len(known) == len(durations) else None,
        **columns,
    )
    return together, np.concatenate(rows)
