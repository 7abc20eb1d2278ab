"""The plainest way to run a model over a log, on whatever kind of numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from srs_eval.cards import earlier_on_card
from srs_eval.engine.equations import Equations, Maths, Value
from srs_eval.nouns import IntArray, Reviews


class Moment(NamedTuple):
    """The nth reviews of all cards that have so many; `p` is None for first reviews."""

    rows: IntArray
    p: Value
    state: tuple[Value, ...]


def plain_walk(
    equations: Equations,
    m: Maths,
    w: Value,
    reviews: Reviews,
    column: Callable[[Any], Value] = np.asarray,
) -> list[Moment]:
    """Ask the author's equations about all first reviews, then all second ones, and so on.

    `column` makes an array of the kind that `m` works on of numpy's.
    """
    nth = earlier_on_card(reviews.card, np.ones(len(reviews), bool))
    card = np.unique(reviews.card, return_inverse=True)[1]
    # Longest cards first: those that go on are the first so many of those before.
    place = np.empty(card.max() + 1, np.int64)
    place[np.argsort(-np.bincount(card), kind="stable")] = np.arange(len(place))
    moments: list[Moment] = []
    for number in range(nth.max() + 1):
        rows = np.flatnonzero(nth == number)
        rows = rows[np.argsort(place[card[rows]])]
        elapsed = column(reviews.elapsed[rows])
        rating = column(reviews.rating[rows].astype(float))
        if moments:
            before = tuple(values[: len(rows)] for values in moments[-1].state)
            p = equations.curve(m, w, before, elapsed) + 0 * elapsed
            after = equations.step(m, w, before, elapsed, rating, p)
        else:
            p, after = None, equations.init(m, w, rating)
        # Plain numbers become columns like the others.
        moments.append(Moment(rows, p, tuple(value + 0 * rating for value in after)))
    return moments
