"""Stabilities after the first review, found from second reviews alone.

The first step of training FSRS v4 to 6: what happened at a card's second review depends on
its first rating and on the time between them only, so that four one-dimensional fits give
`w[0]` to `w[3]`. Ye, *The Algorithm*, wiki of fsrs4anki, 2023 to 2026.
"""

from __future__ import annotations

import math

import numpy as np

from srs_eval.data.reviews import BoolArray, FloatArray, IntArray

FourStabilities = tuple[float, float, float, float]

# How first stabilities usually lie to each other, in logarithms of those of Again to Easy: that of
# Hard is 0.41 of the way from Good to Again, that of Good is 0.54 of the way from Hard to Easy.
_RULES = np.array([[0.41, -1.0, 0.59, 0.0], [0.0, 0.46, -1.0, 0.54]])
_PAIRS = ((1, 2), (2, 3), (3, 4), (1, 3), (2, 4), (1, 4))

# How strongly a stability is drawn to its default, per day.
_PULL = 1 / 16
# Points between bounds whose logarithms lie some 10 apart, and halvings of what is between two.
_POINTS, _HALVINGS = 20, 50


def initial_stabilities(
    first_rating: IntArray,
    elapsed: FloatArray,
    recalled: BoolArray,
    *,
    mean_recall: float,
    decay: float,
    defaults: FourStabilities,
    shortest: float,
    longest: float = 100.0,
    smoothed: bool,
) -> FourStabilities | None:
    """Find the stability, in days, after each first rating from the second reviews of a fold.

    Of each second review, [n], `first_rating` is the rating of the card's first review, 1 to 4,
    `elapsed` the days between the first and the second, above 0, and `recalled` how the second
    ended. Return None if there are no reviews; raise ValueError if an elapsed time is not above 0.
    `decay` is 1 for FSRS v4, 0.5 for 4.5 and 5, and the *default* `w[20]` for 6; `defaults` are the
    stabilities that the model starts from.

    For each first rating, the sum over reviews of the log loss of the power curve with exponent
    ``-decay`` is minimised over ``[shortest, longest]``, in days. Where a larger first rating got a
    smaller stability, the one that rests on fewer reviews takes the value of the other. First
    ratings without reviews are filled in from the others.

    `smoothed` says whether elapsed times are whole days. If so, the recall of reviews with the same
    first rating and elapsed time is averaged with one more outcome, `mean_recall`, and a stability
    costs 1/16 for every day it lies from its default. `mean_recall`, which is read only then, is
    the mean outcome of *all* training reviews of the fold.

    The minimum is the global one and exact. The public implementation starts a quasi-Newton search
    at the default and stops it early where there are only a few reviews.

    >>> import numpy as np
    >>> days, good = np.array([1.0, 4.0, 4.0, 9.0]), np.array([True, True, False, True])
    >>> four = initial_stabilities(
    ...     np.array([3, 3, 3, 3]), days, good, mean_recall=0.9, decay=0.5,
    ...     defaults=(0.4, 1.2, 3.2, 15.7), shortest=0.01, smoothed=True,
    ... )
    >>> [round(stability, 2) for stability in four]
    [0.24, 0.73, 1.96, 9.61]
    """
    if len(elapsed) == 0:
        return None
    if not np.min(elapsed) > 0:
        raise ValueError(f"second reviews after {np.min(elapsed)} days: all must be above 0")
    ratings, owner, counts = np.unique(first_rating, return_inverse=True, return_counts=True)
    # Reviews with the same first rating and elapsed time count alike.
    times, place = np.unique(elapsed, return_inverse=True)
    pairs, pair = np.unique(owner * len(times) + place, return_inverse=True)
    n = np.bincount(pair).astype(np.float64)
    passes: FloatArray = np.bincount(pair, weights=recalled).astype(np.float64)
    pull = _PULL if smoothed else 0.0
    if smoothed:
        passes = (passes + mean_recall) * n / (n + 1)
    owner, days = np.divmod(pairs, len(times))
    start, scale = np.searchsorted(owner, range(len(ratings))), 0.9 ** (-1 / decay) - 1
    age_of_a_day = scale * times[days]
    default = np.asarray(defaults, np.float64)[ratings - 1]

    def loss(x: FloatArray) -> FloatArray:
        """Return the loss of each rating at logarithms of stabilities [..., ratings]."""
        delay = decay * np.log1p(np.exp(-x)[..., owner] * age_of_a_day)
        each = passes * delay - (n - passes) * np.log(-np.expm1(-delay))
        total: FloatArray = np.add.reduceat(each, start, axis=-1)
        return total + pull * np.abs(np.exp(x) - default)

    def slope(x: FloatArray, side: FloatArray) -> FloatArray:
        """Differentiate the loss, below (-1) or above (1) its kink at the default."""
        age = np.exp(-x)[owner] * age_of_a_day
        fall = decay * age / (1 + age)
        each = fall * ((n - passes) / np.expm1(decay * np.log1p(age)) - passes)
        total: FloatArray = np.add.reduceat(each, start)
        return total + pull * side * np.exp(x)

    # The log loss is convex in x, but the pull towards the default is concave below it.
    kink = np.log(np.clip(default, shortest, longest))
    points = np.linspace(math.log(shortest), math.log(longest), _POINTS)
    knots = np.sort(np.vstack([np.repeat(points[:, None], len(ratings), axis=1), kink]), axis=0)
    best, own = np.argmin(loss(knots), axis=0), np.arange(len(ratings))
    x = knots[best, own]
    rises = slope(x, np.where(x >= kink, 1.0, -1.0)) < 0
    falls = ~rises & (slope(x, np.where(x > kink, 1.0, -1.0)) > 0)
    low = np.where(falls, knots[np.maximum(best - 1, 0), own], x)
    high = np.where(rises, knots[np.minimum(best + 1, _POINTS), own], x)
    side = np.where((low + high) / 2 > kink, 1.0, -1.0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        beyond = slope(middle, side) > 0
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    # Where the loss neither rises nor falls from it, a point is at a bound or at the kink.
    days_of = np.exp(np.where(rises | falls, (low + high) / 2, x))
    stabilities = dict(zip(ratings.tolist(), days_of.tolist(), strict=True))
    in_order = _in_order(stabilities, dict(zip(ratings.tolist(), counts.tolist(), strict=True)))
    filled = _filled(in_order, defaults)
    one, two, three, four = (min(max(filled[rating], shortest), longest) for rating in (1, 2, 3, 4))
    return one, two, three, four


def _in_order(stabilities: dict[int, float], counts: dict[int, int]) -> dict[int, float]:
    """Make stabilities grow with the rating: the one with fewer reviews gives way."""
    ordered = dict(stabilities)
    for small, large in _PAIRS:
        if small in ordered and large in ordered and ordered[small] > ordered[large]:
            if counts[small] > counts[large]:
                ordered[large] = ordered[small]
            else:
                ordered[small] = ordered[large]
    return ordered


def _filled(stabilities: dict[int, float], defaults: FourStabilities) -> dict[int, float]:
    """Fill in the stabilities of ratings that were never given."""
    if len(stabilities) == 1:
        ((rating, stability),) = stabilities.items()
        scale = stability / defaults[rating - 1]
        return {other: scale * default for other, default in enumerate(defaults, start=1)}
    if len(stabilities) == 4:
        return stabilities
    places = np.array(sorted(stabilities)) - 1
    missing = np.setdiff1d(np.arange(4), places)
    # Of three known ratings, the rule counts that is about the fourth, or has it at least.
    rules = _RULES if len(missing) > 1 else _RULES[:1] if missing[0] < 2 else _RULES[1:]
    logarithms = np.log([stabilities[place + 1] for place in places.tolist()])
    others = np.exp(np.linalg.solve(rules[:, missing], -rules[:, places] @ logarithms))
    return stabilities | dict(zip((missing + 1).tolist(), others.tolist(), strict=True))
