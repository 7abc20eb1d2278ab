"""Stabilities after the first review, found from second reviews alone.

The first step of training FSRS v4 to 6: what happened at a card's second review depends on
its first rating and on the time between them only, so that four one-dimensional fits give
`w[0]` to `w[3]`. Ye, *The Algorithm*, wiki of fsrs4anki, 2023 to 2026.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from srs_eval.data.reviews import BoolArray, FloatArray, IntArray

FourStabilities = tuple[float, float, float, float]

# How first stabilities usually lie to each other, in logarithms of those of Again to Easy: that of
# Hard is 0.41 of the way from Good to Again, that of Good is 0.54 of the way from Hard to Easy.
_RULES = np.array([[0.41, -1.0, 0.59, 0.0], [0.0, 0.46, -1.0, 0.54]])
_PAIRS = ((1, 2), (2, 3), (3, 4), (1, 3), (2, 4), (1, 4))

# How strongly a stability is drawn to its default, per day.
_PULL = 1 / 16
# Points of the first look between bounds whose logarithms lie some 10 apart: a loss that is
# convex has nothing to hide.
_COARSE, _COARSE_IF_CONVEX = 20, 6
_MOST_STEPS = 60
# Newton's method squares the error of a logarithm with each step: what is left is 1e-14.
_LAST_STEP = 1e-7


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
    counts = np.bincount(first_rating, minlength=5)
    known = np.flatnonzero(counts)
    wanted = np.asarray(defaults, np.float64)[known - 1] if smoothed else None
    outcome = mean_recall if smoothed else None
    loss = _loss_of(first_rating, elapsed, recalled, outcome, decay, wanted)
    found = _minimised(loss, shortest, longest)
    of_known = dict(zip(known.tolist(), found.tolist(), strict=True))
    filled = _filled(_in_order(of_known, counts), defaults)
    one, two, three, four = (min(max(filled[rating], shortest), longest) for rating in (1, 2, 3, 4))
    return one, two, three, four


@dataclass(frozen=True, slots=True)
class _Loss:
    """What each rating's stability costs, as a function of its logarithm.

    Reviews with equal first rating and elapsed time count the same; groups of them stand by rating.
    """

    start: IntArray  # Where the groups of each rating that occurs begin
    # [groups]: Which of these ratings it belongs to, and what its reviews were
    owner: IntArray
    elapsed: FloatArray
    passes: FloatArray
    failures: FloatArray
    decay: float
    wanted: FloatArray | None  # Default of each rating where a stability is drawn to it

    def values(self, at: FloatArray) -> FloatArray:
        """Loss at the logarithms of stabilities `at` [..., ratings]."""
        delay = self.decay * np.log1p(self._age(at))
        return self._values(at, delay)

    def bend(self, at: FloatArray, side: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Loss at `at` [ratings] with its first and second derivative.

        The loss has a kink at the default; `side` is -1 for what holds below it, 1 above.
        """
        age = self._age(at)
        delay = self.decay * np.log1p(age)
        odds_of_recall = 1 / np.expm1(delay)
        falling = self.decay * age / (1 + age)
        forced = falling * self.failures * odds_of_recall
        slope = forced - falling * self.passes
        curvature = forced * falling * (1 + odds_of_recall) - slope / (1 + age)
        first, second = (np.add.reduceat(each, self.start) for each in (slope, curvature))
        if self.wanted is not None:
            pull = _PULL * side * np.exp(at)
            first, second = first + pull, second + pull
        return self._values(at, delay), first, second

    def _age(self, at: FloatArray) -> FloatArray:
        """Elapsed time in units that make the curve ``(1 + age) ** -decay``."""
        factor = 0.9 ** (-1 / self.decay) - 1
        age: FloatArray = (factor * np.exp(-at))[..., self.owner] * self.elapsed
        return age

    def _values(self, at: FloatArray, delay: FloatArray) -> FloatArray:
        each = self.passes * delay - self.failures * np.log(-np.expm1(-delay))
        total: FloatArray = np.add.reduceat(each, self.start, axis=-1)
        if self.wanted is not None:
            total += _PULL * np.abs(np.exp(at) - self.wanted)
        return total


def _loss_of(
    first_rating: IntArray,
    elapsed: FloatArray,
    recalled: BoolArray,
    outcome: float | None,
    decay: float,
    wanted: FloatArray | None,
) -> _Loss:
    """Group the reviews, and move recall towards `outcome` if there is one."""
    times, place = np.unique(elapsed, return_inverse=True)
    key = (first_rating - 1) * len(times) + place
    n = np.bincount(key, minlength=4 * len(times))
    occurring = np.flatnonzero(n)
    total: FloatArray = n[occurring].astype(np.float64)
    passed = np.bincount(key, weights=recalled, minlength=len(n))[occurring]
    passes: FloatArray = passed.astype(np.float64)
    if outcome is not None:
        passes = (passes + outcome) * total / (total + 1)
    _, start, owner = np.unique(occurring // len(times), return_index=True, return_inverse=True)
    of_group = times[occurring % len(times)].astype(np.float64)
    return _Loss(start, owner, of_group, passes, total - passes, decay, wanted)


def _minimised(loss: _Loss, shortest: float, longest: float) -> FloatArray:
    """Minimise the loss of every rating over the bounds, all at once.

    The log loss is convex in the logarithm of a stability, but the pull towards the default
    is concave below it, so a coarse look at the whole range comes first.
    """
    low, high = math.log(shortest), math.log(longest)
    everyone = np.arange(len(loss.start))
    points = np.linspace(low, high, _COARSE_IF_CONVEX if loss.wanted is None else _COARSE)
    knots = np.repeat(points[:, None], len(everyone), axis=1)
    kink = np.full(len(everyone), low)
    if loss.wanted is not None:
        kink = np.log(np.clip(loss.wanted, shortest, longest))
        knots = np.sort(np.vstack([knots, kink]), axis=0)
    best = np.argmin(loss.values(knots), axis=0)
    at = knots[best, everyone]
    after = knots[np.minimum(best + 1, len(knots) - 1), everyone]
    before = knots[np.maximum(best - 1, 0), everyone]

    side_after, side_before = np.where(at >= kink, 1.0, -1.0), np.where(at > kink, 1.0, -1.0)
    rises = (loss.bend(at, side_after)[1] < 0) & (after > at)
    falls = ~rises & (loss.bend(at, side_before)[1] > 0) & (before < at)
    # A parameter that does neither is at a bound, or at the kink, and stays there.
    other = np.where(rises, after, np.where(falls, before, at))
    return np.exp(_refined(loss, at, other, np.where(rises, side_after, side_before)))


def _refined(loss: _Loss, at: FloatArray, other: FloatArray, side: FloatArray) -> FloatArray:
    """Move from `at` to the minimum between it and `other`, where the loss has no kink.

    Newton's method, which goes halfway to the other end instead where its step leads out of
    the bracket. All along, the loss falls from `at` towards `other` and nowhere known lies
    below it, so that the bracket holds a minimum.
    """
    value, first, second = loss.bend(at, side)
    for _ in range(_MOST_STEPS):
        # Where the curvature is not positive the step does not count.
        step = -first / np.where(second > 0, second, 1.0)
        usable = (second > 0) & (np.abs(step) < np.abs(other - at))
        step = np.where(usable, step, (other - at) / 2)
        new = at + step
        new_value, new_first, new_second = loss.bend(new, side)
        # Rounding must not forbid the last steps, which hardly change the loss.
        better = new_value <= value + 1e-12 * (1 + np.abs(value))
        turned = better & (new_first * (other - at) > 0)
        other = np.where(better, np.where(turned, at, other), new)
        at, value = np.where(better, new, at), np.where(better, new_value, value)
        first = np.where(better, new_first, first)
        second = np.where(better, new_second, second)
        if np.max(np.abs(step)) < _LAST_STEP:
            break
    return at


def _in_order(found: Mapping[int, float], counts: IntArray) -> dict[int, float]:
    """Make stabilities grow with the rating: the one with fewer reviews gives way."""
    ordered = dict(found)
    for small, large in _PAIRS:
        if small in ordered and large in ordered and ordered[small] > ordered[large]:
            if counts[small] > counts[large]:
                ordered[large] = ordered[small]
            else:
                ordered[small] = ordered[large]
    return ordered


def _filled(known: Mapping[int, float], defaults: FourStabilities) -> dict[int, float]:
    """Fill in the stabilities of ratings that were never given."""
    if len(known) == 1:
        ((rating, stability),) = known.items()
        scale = stability / defaults[rating - 1]
        return {other: scale * default for other, default in enumerate(defaults, start=1)}
    if len(known) == 4:
        return dict(known)
    places = np.array(sorted(known)) - 1
    missing = np.setdiff1d(np.arange(4), places)
    # Of three known ratings, the rule counts that is about the fourth, or has it at least.
    rules = _RULES if len(missing) > 1 else _RULES[:1] if missing[0] < 2 else _RULES[1:]
    logarithms = np.log([known[place + 1] for place in places.tolist()])
    found = np.exp(np.linalg.solve(rules[:, missing], -rules[:, places] @ logarithms))
    return dict(known) | dict(zip((missing + 1).tolist(), found.tolist(), strict=True))
