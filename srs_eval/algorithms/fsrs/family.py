"""Formulas that versions of FSRS share, the prior of their fits, and first stabilities.

FSRS describes a card by its stability (days after which recall is 90 %) and its difficulty
(1 to 10). Ye, Su & Cao (2022), *A Stochastic Shortest Path Algorithm for Optimizing Spaced
Repetition Scheduling*, KDD; Ye, *The Algorithm*, wiki of fsrs4anki, 2022 to 2026.

Numbers of parameters in these formulas are those of versions 4 to 6, which agree on them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize_scalar

from srs_eval.algorithms.fitted import Fitted, Problem
from srs_eval.data.cards import rows_by_card
from srs_eval.data.reviews import BoolArray, FloatArray, IntArray
from srs_eval.engine.equations import Maths, State, Value
from srs_eval.engine.objective import penalty_matrix
from srs_eval.engine.parameters import ParameterSpace

_LONGEST_STABILITY = 36500.0
EASIEST, HARDEST = 1.0, 10.0
HARD, GOOD, EASY = 2, 3, 4

# Standard deviation of each parameter of FSRS-5 over users, as published with its trainer.
FSRS5_SPREAD = (
    *(6.61, 9.52, 17.69, 27.74, 0.55, 0.28, 0.67, 0.12, 0.40, 0.18),
    *(0.34, 0.27, 0.08, 0.14, 0.57, 0.25, 1.03, 0.27, 0.39),
)
# Prior of the logarithms of first stabilities: standard deviations of a shift they share and
# of what each adds. Empirical Bayes on 47 users, rounded.
_SHIFT, _DEVIATION = 1.5, 0.75

_LONGEST_FIRST_STABILITY = 100.0
# How first stabilities usually lie to each other, in logarithms of those of Again to Easy: that of
# Hard is 0.41 of the way from Good to Again, that of Good is 0.54 of the way from Hard to Easy.
_RULES = np.array([[0.41, -1.0, 0.59, 0.0], [0.0, 0.46, -1.0, 0.54]])
_PAIRS = ((0, 1), (1, 2), (2, 3), (0, 2), (1, 3), (0, 3))
# How strongly a stability is drawn to its default, per day.
_PULL = 1 / 16
_POINTS = 20


def guessed_space(
    defaults: tuple[float, ...], lower: tuple[float, ...], upper: tuple[float, ...]
) -> ParameterSpace:
    """Guess a spread where none is published: a quarter of the way between the bounds."""
    widths = (high - low for low, high in zip(lower, upper, strict=True))
    return ParameterSpace(defaults, lower, upper, tuple(width / 4 for width in widths))


class ExponentialForgetting:
    """Base of equations with the exponential curve of the first three versions."""

    def curve(self, m: Maths, w: Value, state: State, elapsed: Value) -> Value:
        """Exponential forgetting, at 90 % when `elapsed` equals the first number of the state."""
        return 0.9 ** (elapsed / state[0])


@dataclass(frozen=True)
class FsrsEquations:
    """Base of the equations of FSRS, with the power-law curve of v4 and later."""

    state_names: ClassVar[tuple[str, ...]] = ("stability", "difficulty")
    parameters: ClassVar[ParameterSpace]
    decay: ClassVar[float] = 0.5

    shortest_stability: float = 0.01  # In days; 0.01 with whole days, 0.0001 with fractional ones

    def exponent(self, w: Value) -> Value:
        """Exponent of the forgetting curve, without its sign."""
        return self.decay

    def curve(self, m: Maths, w: Value, state: State, elapsed: Value) -> Value:
        """Power law, at 90 % when `elapsed` equals the stability."""
        decay = self.exponent(w)
        factor = 0.9 ** (-1 / decay) - 1
        return (1 + factor * elapsed / state[0]) ** (-decay)

    def bounded(self, m: Maths, stability: Value) -> Value:
        """Return a stability within its bounds."""
        return m.clip(stability, self.shortest_stability, _LONGEST_STABILITY)

    def first_stability(self, m: Maths, w: Value, rating: Value) -> Value:
        """Stability after the first review: one parameter for each rating, `w[0]` to `w[3]`."""
        passed = m.where(rating == HARD, w[1], m.where(rating == GOOD, w[2], w[3]))
        return m.where(rating < HARD, w[0], passed)

    def first_difficulty(self, m: Maths, w: Value, rating: Value) -> Value:
        """Difficulty after the first review from FSRS-5 on, before it is brought into 1 to 10.

        Later difficulties are drawn towards that after Easy, which may lie outside of 1 to 10.
        """
        return w[4] - m.exp(w[5] * (rating - 1)) + 1

    def after_pass(self, m: Maths, w: Value, state: State, rating: Value, p: Value) -> Value:
        """Stability after a pass on a later day: the easier and the less likely, the more."""
        stability, difficulty = state
        bonus = m.where(rating == HARD, w[15], m.where(rating == EASY, w[16], 1.0))
        surprise = m.exp((1 - p) * w[10]) - 1
        growth = m.exp(w[8]) * (11 - difficulty) * stability ** (-w[9]) * surprise * bonus
        return stability * (1 + growth)

    def after_failure(self, m: Maths, w: Value, state: State, p: Value) -> Value:
        """Stability after a failure on a later day."""
        stability, difficulty = state
        memory = (stability + 1) ** w[13] - 1
        return w[11] * difficulty ** (-w[12]) * memory * m.exp((1 - p) * w[14])


class FsrsFitted(Fitted):
    """Base of FSRS v4 to 7, whose `w[0]` to `w[3]` are the stabilities after a first review.

    ``newton`` fits the logarithms of these. Their prior is normal around those of the start, with
    one shift for all four (standard deviation 1.5) and a deviation for each (0.75). The other
    parameters have their spread, and a weight that falls with the number of training reviews: 4.5
    without any, 2.5 at 500, 0.9 at 5,000. A short log holds only the first reviews of most cards,
    which say little of how stability grows later. The option `prior_weight` multiplies both.

    ``fit=s0`` finds the first stabilities from second reviews alone, where ``reference`` starts.
    """

    methods: ClassVar[tuple[str, ...]] = ("newton", "reference", "s0", "default")
    in_fractional_days: ClassVar[tuple[float, ...]] = (0.0001,)
    logarithms: ClassVar[int] = 4
    # What multiplies the weight of the other parameters in whole and in fractional days. It is
    # below 1 where the published parameters are known to lie off: those of another clock, or of a
    # version whose spread is that of a later one
    later_prior: ClassVar[tuple[float, float]] = (1.0, 1.0)

    def space(self, equations: FsrsEquations) -> ParameterSpace:
        """Return the bounds, with first stabilities as short as any stability may be."""
        space = equations.parameters
        return replace(space, lower=(*(equations.shortest_stability,) * 4, *space.lower[4:]))

    def penalty(self, space: ParameterSpace, n_reviews: int, *, whole_days: bool) -> FloatArray:
        """Return the penalty matrix of the prior for a number of training reviews and a clock."""
        in_days, in_fractions = self.later_prior
        later = (in_days if whole_days else in_fractions) * (0.5 + 2000 / (n_reviews + 500))
        penalty = penalty_matrix(space, later)
        covariance = _DEVIATION**2 * np.eye(4) + _SHIFT**2
        penalty[:4, :4] = np.linalg.inv(covariance) / 2
        return self.prior_strength * penalty

    def trained(self, problem: Problem, rows: IntArray, start: FloatArray) -> FloatArray | None:
        """Find the stabilities after first reviews, and train from there if the method does."""
        if "s0" not in self.methods:
            return super().trained(problem, rows, start)
        reviews = problem.reviews
        by_card, later_day = rows_by_card(reviews.card), reviews.elapsed_days > 0
        on_later_days = by_card.earlier(later_day) + later_day
        second = rows[(on_later_days[rows] == 1) & (reviews.elapsed[rows] > 0)]
        if not len(second):
            return None
        first = initial_stabilities(
            reviews.rating[by_card.first()[second]],
            reviews.elapsed[second],
            reviews.recalled[second],
            mean_recall=float(reviews.recalled[rows].mean()) if reviews.whole_days else None,
            decay=self.mathematics.decay,
            defaults=start[:4],
            shortest=problem.space.lower[0],
        )
        begun = np.r_[first, start[4:]]
        return begun if self.method == "s0" else super().trained(problem, rows, begun)


def initial_stabilities(
    first_rating: IntArray,
    elapsed: FloatArray,
    recalled: BoolArray,
    *,
    mean_recall: float | None,
    decay: float,
    defaults: FloatArray,
    shortest: float,
) -> FloatArray:
    """Find the stability, in days, after each first rating from the second reviews of a fold.

    What happened at a card's second review depends on its first rating and on the time between
    them only, so that four one-dimensional fits give `w[0]` to `w[3]`. The public implementation
    starts a quasi-Newton search at the default, stopped early where there are only a few reviews.

    For each first rating, the log loss of the power curve with exponent ``-decay`` is minimised
    over `shortest` to 100 days. In whole days, with a `mean_recall` of *all* training reviews, the
    recall of reviews with the same first rating and elapsed time is averaged with this one more
    outcome, and a stability costs 1/16 for every day it lies from its default. Ratings without
    reviews are filled in from the others.
    """
    four, counts = np.full(4, np.nan), np.bincount(first_rating - 1, minlength=4)
    for number in np.flatnonzero(counts).tolist():
        # Reviews with the same elapsed time count alike.
        own = first_rating == number + 1
        days, place, n = np.unique(elapsed[own], return_inverse=True, return_counts=True)
        passes: FloatArray = np.bincount(place, recalled[own]).astype(np.float64)
        if mean_recall is not None:
            passes = (passes + mean_recall) * n / (n + 1)
        pull = 0.0 if mean_recall is None else _PULL
        four[number] = _of_least_loss(
            days, n, passes, decay, float(defaults[number]), pull, shortest
        )
    return np.clip(filled(in_order(four, counts), defaults), shortest, _LONGEST_FIRST_STABILITY)


def _of_least_loss(
    days: FloatArray,
    n: IntArray,
    passes: FloatArray,
    decay: float,
    default: float,
    pull: float,
    shortest: float,
) -> float:
    """Stability that explains the passes among `n` reviews after so many days best."""
    age = (0.9 ** (-1 / decay) - 1) * days  # elapsed time at a stability of one day

    def loss(x: float) -> float:
        """Loss at the logarithm of a stability; convex, but for the pull below the default."""
        delay = decay * np.log1p(np.exp(-x) * age)
        log_loss = (passes * delay - (n - passes) * np.log(-np.expm1(-delay))).sum()
        return float(log_loss + pull * abs(np.exp(x) - default))

    # The pull has a kink at the default.
    kink = np.log(np.clip(default, shortest, _LONGEST_FIRST_STABILITY))
    points = np.linspace(np.log(shortest), np.log(_LONGEST_FIRST_STABILITY), _POINTS)
    knots = np.sort(np.append(points, kink))
    best = int(np.argmin([loss(x) for x in knots]))
    between = [
        minimize_scalar(loss, bounds=ends, method="bounded", options={"xatol": 1e-10}).x
        for ends in pairwise(knots[max(best - 1, 0) : best + 2])
    ]
    return float(np.exp(min((knots[best], *between), key=loss)))


def in_order(four: FloatArray, counts: IntArray) -> FloatArray:
    """Make stabilities grow with the rating: the one with fewer reviews takes the other value."""
    ordered = four.copy()
    for small, large in _PAIRS:
        if ordered[small] > ordered[large]:  # NaN, for a rating without reviews, is not larger
            of, to = (small, large) if counts[small] > counts[large] else (large, small)
            ordered[to] = ordered[of]
    return ordered


def filled(four: FloatArray, defaults: FloatArray) -> FloatArray:
    """Stabilities of all ratings, those of NaN from the others."""
    known, missing = np.flatnonzero(np.isfinite(four)), np.flatnonzero(np.isnan(four))
    if len(known) == 1:
        return np.asarray(defaults * (four[known] / defaults[known]))
    # Of three known ratings, the rule counts that is about the fourth, or has it at least.
    rules = _RULES[: len(missing)] if len(missing) != 1 or missing[0] < 2 else _RULES[1:]
    logarithms = np.linalg.solve(rules[:, missing], -rules[:, known] @ np.log(four[known]))
    whole = four.copy()
    whole[missing] = np.exp(logarithms)
    return whole
