"""A log whose intervals are drawn by lot, and models that know the memory behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from srs_eval.data.schema import reviews_from_columns
from srs_eval.draws.lots import Lots
from srs_eval.draws.trials import Assignments
from srs_eval.nouns import Algorithm

HALF_LIVES = np.array([4.0, 9.0, 20.0])


def recall(card, elapsed, power=1.0):
    """Recall of cards, which have one of three half-lives for good."""
    return 2.0 ** (-((elapsed / HALF_LIVES[card % 3]) ** power))


@dataclass(frozen=True)
class Knows(Algorithm):
    """Predicts by the true half-lives, and by another curve unless `power` is 1."""

    power: float = 1.0
    same_day: Any = False
    parameters: Any = ()

    def fit(self, reviews, rows, rng):
        return self

    def predict(self, reviews, rows):
        return self.predict_at(reviews, rows, reviews.elapsed[rows][:, None])[:, 0]

    def predict_at(self, reviews, rows, elapsed):
        return recall(reviews.card[rows][:, None], elapsed, self.power)


def toy(cards, seed, reviews=9):
    """Return a log and its lots; long half-lives get long intervals, and some answers are late."""
    rng = np.random.default_rng(seed)
    card = np.arange(cards)
    ideal = np.rint(HALF_LIVES[card % 3] / 3).astype(np.int64) + 2
    day = rng.integers(0, 30, cards)
    columns, intervals = [], []
    recalled = np.ones(cards, bool)
    for _ in range(reviews):
        drawn = ideal + rng.integers(-2, 3, cards)
        drawn = np.maximum(drawn, 1)
        columns.append((card, day, np.where(recalled, 3, 1)))
        intervals.append(drawn)
        elapsed = drawn + rng.geometric(0.6, cards) - 1
        recalled = rng.random(cards) < recall(card, elapsed)
        day = day + elapsed
    names, days, ratings = (np.concatenate(each) for each in zip(*columns, strict=True))
    drawn = np.concatenate(intervals)
    order = np.lexsort((names, days))
    log = reviews_from_columns(
        user=1, source="toy", card=names[order], day=days[order], rating=ratings[order]
    )
    low = np.maximum(ideal - 2, 1)[names[order]]
    lots = Lots.collected(
        np.repeat(np.arange(len(log)), 5),
        np.maximum(ideal[names[order]][:, None] + np.arange(-2, 3), 1).ravel(),
        np.full(5 * len(log), 0.2),
        len(log),
    )
    assert (lots.low == low).all()
    return log, Assignments(log.row, drawn[order], lots)
