"""Half-life models: functions of the counts of a card's answers, and Ebisu's beliefs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize
from scipy.special import betaln, digamma

from srs_eval.algorithms.algorithm import Algorithm
from srs_eval.algorithms.fitted import Fitted
from srs_eval.algorithms.history import CurveOnly
from srs_eval.algorithms.options import NotNegative
from srs_eval.data.cards import rows_by_card
from srs_eval.data.reviews import BoolArray, FloatArray, IntArray, Reviews
from srs_eval.engine.equations import Maths, State, Value, uncertain
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.engine.reference import Recipe
from srs_eval.errors import FitSkipped

# As in the public code: 15 minutes and 9 months, and bounds of probabilities.
_SHORTEST, _LONGEST = 15 / (24 * 60), 274.0
_LEAST, _MOST = 0.0001, 0.9999
_LN2 = math.log(2)

# Of Ebisu: alpha, beta and half-life before the first review.
_START = (0.2, 0.2, 512.0)
_SHORTEST_ELAPSED = 0.001
_MOST_STEPS = 60
# In logarithms: what the search ends with, and how far a step may go.
_SHORTEST_STEP, _LONGEST_STEP = 1e-7, 3.0
_FARTHEST_FROM_HALF = 1e-6
# Of alpha: below it recall at a review is so near 1 that the difference of two logarithms would
# lose digits, and 4 nodes integrate its derivative to rounding.
_SOON = 0.05
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(4)


def features(reviews: Reviews, rows: IntArray) -> FloatArray:
    """Roots of right and wrong answers of the card before each of `rows`, and 1: [rows, 3]."""
    cards = rows_by_card(reviews.card)
    right = cards.earlier(reviews.recalled)[rows].astype(np.float64)
    wrong = cards.nth[rows] - right
    return np.column_stack([np.sqrt(1 + right), np.sqrt(1 + wrong), np.ones(len(rows))])


def half_life(inputs: FloatArray, weights: FloatArray) -> FloatArray:
    """Raise 2 to the weighted sum of features, within 15 minutes and 274 days."""
    # Powers beyond 64 are outside the bounds by far; they could overflow.
    return np.clip(np.exp2(np.clip(inputs @ weights, -64.0, 64.0)), _SHORTEST, _LONGEST)


def recall(elapsed: FloatArray, days: FloatArray) -> FloatArray:
    """Probability of recall `elapsed` days after a review, within 0.0001 and 0.9999."""
    return np.clip(np.exp2(-elapsed / days), _LEAST, _MOST)


@dataclass(frozen=True, slots=True)
class HalfLifeModel(CurveOnly):
    """Exponential forgetting with a half-life of 2 to the power of weighted features, in days."""

    parameters: tuple[float, ...]  # Weights of the features

    def predict_at(self, reviews: Reviews, rows: IntArray, elapsed: FloatArray) -> FloatArray:
        days = half_life(features(reviews, rows), np.asarray(self.parameters))
        return recall(np.asarray(elapsed, np.float64), days[:, None])


@dataclass(frozen=True, slots=True)
class HlrDuolingo(Algorithm):
    """Half-life regression as Duolingo published it (HLR), without indicators of words.

    Settles & Meeder (2016), *A Trainable Spaced Repetition Model for Language Learning*, ACL,
    https://doi.org/10.18653/v1/P16-1174, in the form of its public code: the half-life is
    ``2**(weights · (sqrt(1 + right), sqrt(1 + wrong), 1))`` days, between 15 minutes and 274 days,
    and minimised is ``(p - p̂)² + alpha (h - ĥ)² + penalty |weights|²``, averaged over reviews.
    There p is the share of a session's exercises that were right, and h the half-life that explains
    it; here a session is one review, whose p is 0.9999 or 0.0001. Then h is hardly more than the
    outcome again, on another scale, and its term, by far the largest, spoils the fit: with
    ``alpha=0`` (the paper's ablation "-h") it is another model. Reads elapsed time and pass or
    fail; 3 parameters. No published row for reviews (the form of the public benchmark is
    `srs_eval.algorithms.half_life.Hlr`).

    Parameters
    ----------
    alpha : float
        Weight of the half-life term, 0 or more.
    penalty : float
        Weight of the squared weights, 0 or more.
    """

    alpha: NotNegative = 0.01
    penalty: NotNegative = 0.1

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> HalfLifeModel:
        """Minimise the loss by L-BFGS, from half-lives of one day."""
        if len(rows) == 0:
            raise FitSkipped("hlr_duolingo: there are no training reviews to learn from")
        loss = self.loss(reviews, np.sort(rows))
        weights = minimize(loss, np.zeros(3), jac=True, method="L-BFGS-B").x
        return HalfLifeModel(tuple(weights.tolist()))

    def loss(
        self, reviews: Reviews, rows: IntArray
    ) -> Callable[[FloatArray], tuple[float, FloatArray]]:
        """Return the loss and its gradient, as a function of the weights."""
        inputs, elapsed = features(reviews, rows), reviews.elapsed[rows].astype(np.float64)
        outcome = np.where(reviews.recalled[rows], _MOST, _LEAST)
        days = np.clip(-elapsed / np.log2(outcome), _SHORTEST, _LONGEST)

        def loss(weights: FloatArray) -> tuple[float, FloatArray]:
            h = half_life(inputs, weights)
            p = recall(elapsed, h)
            # Both derivatives are by the base-2 logarithm of the half-life; 0 at bounds.
            inside = (h > _SHORTEST) & (h < _LONGEST)
            dh = np.where(inside, _LN2 * h, 0.0)
            dp = np.where(inside & (p > _LEAST) & (p < _MOST), _LN2**2 * p * elapsed / h, 0.0)
            error_p, error_h = p - outcome, h - days
            value = np.mean(error_p**2 + self.alpha * error_h**2)
            slope = 2 * (error_p * dp + self.alpha * error_h * dh) @ inputs / len(p)
            penalised = value + self.penalty * (weights @ weights)
            return float(penalised), slope + 2 * self.penalty * weights

        return loss


@dataclass(frozen=True, slots=True)
class HlrEquations:
    """Exponential forgetting whose half-life grows with passes and shrinks with failures."""

    state_names: ClassVar[tuple[str, ...]] = ("passes", "failures")
    parameters: ClassVar[ParameterSpace] = ParameterSpace(
        defaults=(2.5819, -0.8674, 2.7245),
        lower=(-math.inf,) * 3,
        upper=(math.inf,) * 3,
        spread=(2.5,) * 3,  # Not published, but without any, few passes send it to infinity
    )

    def init(self, m: Maths, w: Value, rating: Value) -> State:
        return self.step(m, w, (0.0, 0.0), 0.0, rating, 1.0)

    def curve(self, m: Maths, w: Value, state: State, elapsed: Value) -> Value:
        """Exponential forgetting, at 50 % when `elapsed` equals the half-life."""
        passes, failures = state
        half_life = 2 ** (w[0] * passes**0.5 + w[1] * failures**0.5 + w[2])
        return 0.5 ** (elapsed / half_life)

    def step(
        self, m: Maths, w: Value, state: State, elapsed: Value, rating: Value, p: Value
    ) -> State:
        passes, failures = state
        return passes + m.where(rating > 1, 1.0, 0.0), failures + m.where(rating > 1, 0.0, 1.0)


class Hlr(Fitted):
    """Half-life regression in the form of the public benchmark (HLR).

    After Settles & Meeder (2016), *A Trainable Spaced Repetition Model for Language Learning*,
    ACL, https://doi.org/10.18653/v1/P16-1174. The benchmark keeps its half-life of square roots
    of counts, drops the indicators of single words, and trains by log loss alone, unweighted
    and unregularised. Reads elapsed time and pass or fail; 3 parameters. Published
    row, without same-day reviews: log loss 0.4694, RMSE(bins) 0.1275, AUC 0.6369.
    """

    name = "hlr"
    mathematics = HlrEquations
    own_recency = "none"
    # Its inputs are counts, which all have the same length.
    recipe = Recipe(sort=False, longest_history=None, decimals=None)


def updated(belief: FloatArray, elapsed: FloatArray, recalled: BoolArray) -> FloatArray:
    """Update beliefs, [3, n], by the outcomes of a review of each card.

    A belief is alpha, beta and half-life in days: p, recall one half-life after a review, is taken
    to follow Beta(alpha, beta), and recall at the review was ``p**when``. The posterior is moved to
    the time at which its mean is one half, the new half-life, and replaced by the Beta distribution
    of its mean and variance there. Where an outcome is so surprising that numbers end, the belief
    stays as it was.
    """
    alpha, beta, half_life = belief
    when = np.maximum(elapsed, _SHORTEST_ELAPSED) / half_life

    def log_moment(power: FloatArray) -> FloatArray:
        """Return the logarithm of the integral of p**power times prior times likelihood."""
        share = _log_mean(alpha + power, beta, when)
        outcome = np.where(recalled, share, np.log(-np.expm1(share)))
        return np.asarray(betaln(alpha + power, beta) + outcome)

    def slope(power: FloatArray) -> FloatArray:
        """Differentiate that logarithm by the power."""
        a = alpha + power
        prior = digamma(a) - digamma(a + beta)
        passed = digamma(a + when) - digamma(a + when + beta)
        share = _log_mean(a, beta, when)
        failed = (prior - np.exp(share) * passed) / -np.expm1(share)
        return np.asarray(np.where(recalled, passed, failed))

    # What is not finite is not possible.
    with np.errstate(all="ignore"):
        # Newton's method for the power of which the posterior mean is one half: the power as its
        # logarithm, and the mean as that of its negative logarithm, are nearly on a straight line.
        log_power = np.zeros_like(when)
        whole = log_moment(log_power)
        for _ in range(_MOST_STEPS):
            power = np.exp(log_power)
            surprise = whole - log_moment(power)
            step = np.log(surprise / math.log(2)) * surprise / (slope(power) * power)
            log_power += np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
            # NaN compares as False.
            if not (np.abs(step) > _SHORTEST_STEP).any():
                break
        power = np.exp(log_power)
        mean = np.exp(log_moment(power) - whole)
        variance = np.exp(log_moment(2 * power) - whole) - mean**2
        size = mean * (1 - mean) / variance - 1
        posterior = np.array([mean * size, (1 - mean) * size, power * half_life])
        possible = np.isfinite(posterior).all(axis=0) & (posterior > 0).all(axis=0)
        possible &= np.abs(mean - 0.5) < _FARTHEST_FROM_HALF
    return np.where(possible, posterior, belief)


def _log_mean(alpha: FloatArray, beta: FloatArray, power: FloatArray) -> FloatArray:
    """Return the logarithm of the mean of p**power, p being distributed as Beta(alpha, beta)."""
    log_mean: FloatArray = betaln(alpha + power, beta) - betaln(alpha, beta)
    soon = power < _SOON * alpha
    a, b, until = alpha[soon], beta[soon], power[soon] / 2
    at = a + until * (1 + _NODES[:, None])
    log_mean[soon] = until * (_NODE_WEIGHTS @ (digamma(at) - digamma(at + b)))
    return log_mean


def beliefs_before(reviews: Reviews, rows: IntArray) -> FloatArray:
    """Beliefs before each review, [3, reviews]: NaN at first ones, and where `rows` need none."""
    cards = rows_by_card(reviews.card)
    previous, is_first = cards.previous(), cards.nth == 0
    last = np.zeros(len(cards.begins), np.int64)
    np.maximum.at(last, cards.number[rows], cards.nth[rows])
    # Cards with many reviews first: the order is that of the recorded runs, for equal last bits.
    order = np.lexsort((cards.number, -last[cards.number], cards.nth))
    by_nth = order[cards.nth[order] <= last[cards.number[order]]]
    before = np.full((3, len(reviews)), np.nan)
    before[:, is_first] = np.array(_START)[:, None]
    # All second reviews of cards, then all third ones, and so on.
    for here in np.split(by_nth, np.cumsum(np.bincount(cards.nth[by_nth])))[1:]:
        row = previous[here]
        before[:, here] = updated(before[:, row], reviews.elapsed[row], reviews.recalled[row])
    before[:, is_first] = np.nan
    return before


@dataclass(frozen=True, slots=True)
class Ebisu(CurveOnly, Algorithm):
    """Ebisu, version 2: a Beta distribution of recall for each card, nothing learned.

    Fasih, *Ebisu: intelligent quiz scheduling*, https://fasiha.github.io/ebisu/. Reads elapsed time
    and pass or fail, not those of same-day reviews; no parameters. Where an outcome is so
    surprising that the update cannot be computed, the belief stays as it was. Published row,
    without same-day reviews: log loss 0.4989, RMSE(bins) 0.1627, AUC 0.6051.
    """

    # It is its own model.
    parameters: ClassVar[tuple[float, ...]] = ()

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> Ebisu:
        return self

    def predict_at(self, reviews: Reviews, rows: IntArray, elapsed: FloatArray) -> FloatArray:
        """Predict recall at other elapsed times; NaN at a card's first review."""
        alpha, beta, half_life = beliefs_before(reviews, rows)[:, rows, None]
        power = np.asarray(elapsed, np.float64) / half_life
        return uncertain(np.exp(betaln(alpha + power, beta) - betaln(alpha, beta)))
