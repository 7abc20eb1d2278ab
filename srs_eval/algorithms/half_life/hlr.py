"""Half-life models of Settles & Meeder (2016): functions of the counts of a card's answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize

from srs_eval.algorithms.algorithm import Algorithm
from srs_eval.algorithms.fitted import Fitted
from srs_eval.algorithms.history import CurveOnly
from srs_eval.algorithms.options import NotNegative
from srs_eval.data.cards import rows_by_card
from srs_eval.data.reviews import FloatArray, IntArray, Reviews
from srs_eval.engine.equations import Maths, State, Value
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.engine.reference import Recipe
from srs_eval.errors import FitSkipped

# As in the public code: 15 minutes and 9 months, and bounds of probabilities.
_SHORTEST, _LONGEST = 15 / (24 * 60), 274.0
_LEAST, _MOST = 0.0001, 0.9999
_LN2 = math.log(2)


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
    ``2**(weights · (sqrt(1 + right), sqrt(1 + wrong), 1))`` days, between 15 minutes and 274
    days, and minimised is ``(p - p̂)² + alpha (h - ĥ)² + penalty |weights|²``, averaged over
    reviews. There p is the share of a session's exercises that were right, and h the half-life
    that explains it; here a session is one review, whose p is 0.9999 or 0.0001. Then h is
    hardly more than the outcome again, on another scale, and its term, by far the largest,
    spoils the fit: with ``alpha=0`` (the paper's ablation "-h") it is another model. Reads
    elapsed time and pass or fail; 3 parameters. No published row for reviews (the
    form of the public benchmark is `srs_eval.algorithms.half_life.hlr.Hlr`).

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
        return HalfLifeModel(
            tuple(minimize(loss, np.zeros(3), jac=True, method="L-BFGS-B").x.tolist())
        )

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
