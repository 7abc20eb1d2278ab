"""The oracle for kernels: equations walked by NumPy, and derivatives by differences."""

from collections import namedtuple

import numpy as np

from srs_eval.data.cards import earlier_on_card
from srs_eval.engine.equations import NUMPY_MATHS
from srs_eval.engine.tracing import LARGEST_P, SMALLEST_P

# The nth reviews of all cards that have so many; `p` is None for first reviews.
Moment = namedtuple("Moment", "rows p state")
# What must come out. `weight` [rows] is 0 where p is too near to 0 or 1; `shares` [parameters]
# are sums of the absolute parts of the gradient, which rounding errors are proportional to.
Oracle = namedtuple("Oracle", "weight loss gradient information shares")


def plain_walk(equations, w, reviews):
    """Ask the author's equations about all first reviews, then all second ones, and so on."""
    nth = earlier_on_card(reviews.card, np.ones(len(reviews), bool))
    card = np.unique(reviews.card, return_inverse=True)[1]
    # Longest cards first: those that go on are the first so many of those before.
    place = np.empty(card.max() + 1, np.int64)
    place[np.argsort(-np.bincount(card), kind="stable")] = np.arange(len(place))
    moments = []
    for number in range(nth.max() + 1):
        rows = np.flatnonzero(nth == number)
        rows = rows[np.argsort(place[card[rows]])]
        elapsed, rating = reviews.elapsed[rows], reviews.rating[rows].astype(float)
        if moments:
            before = tuple(values[: len(rows)] for values in moments[-1].state)
            p = equations.curve(NUMPY_MATHS, w, before, elapsed) + 0 * elapsed
            after = equations.step(NUMPY_MATHS, w, before, elapsed, rating, p)
        else:
            p, after = None, equations.init(NUMPY_MATHS, w, rating)
        # Plain numbers become columns like the others.
        moments.append(Moment(rows, p, tuple(value + 0 * rating for value in after)))
    return moments


def predictions(equations, w, reviews):
    """Predict all reviews; 0.5 at first ones, which nothing depends on."""
    p = np.full(len(reviews), 0.5)
    for moment in plain_walk(equations, w, reviews)[1:]:
        p[moment.rows] = moment.p
    return p


def oracle(equations, w, reviews, rows, weight, least):
    """Compute what the kernels are to compute, of p from `least` to 1 - `least`."""
    p, steps = predictions(equations, w, reviews)[rows], 1e-6 * np.eye(len(w))
    slopes = np.zeros((len(rows), len(w)))
    for number, step in enumerate(steps):
        above, below = (predictions(equations, at, reviews)[rows] for at in (w + step, w - step))
        slopes[:, number] = (above - below) / 2e-6
    weight = np.where((p > least) & (p < 1 - least), weight, 0.0)
    recalled = reviews.recalled[rows]
    likely = np.clip(np.where(recalled, p, 1 - p), SMALLEST_P, LARGEST_P)
    # Where nothing counts, p may be 0 or 1.
    precision = weight / np.where(weight > 0, p * (1 - p), 1.0)
    of_p = precision * (p - recalled)
    return Oracle(
        weight,
        -(weight * np.log(likely)).sum(),
        of_p @ slopes,
        (slopes * precision[:, None]).T @ slopes,
        np.abs(slopes * of_p[:, None]).sum(axis=0),
    )
