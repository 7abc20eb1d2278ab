"""Ebisu: a belief about the half-life of each card, updated by Bayes' rule."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import betaln, digamma

from srs_eval.algorithms.algorithm import Algorithm
from srs_eval.algorithms.history import CurveOnly
from srs_eval.data.cards import rows_by_card
from srs_eval.data.reviews import BoolArray, FloatArray, IntArray, Reviews
from srs_eval.engine.equations import uncertain

# Alpha, beta and half-life before the first review.
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


def recall(belief: FloatArray, elapsed: FloatArray) -> FloatArray:
    """Return the expected probability of recall `elapsed` days after a review.

    A belief is alpha, beta and half-life in days [3, n]: one half-life after a review the
    probability of recall is believed to follow Beta(alpha, beta).
    """
    alpha, beta, half_life = belief
    p: FloatArray = np.exp(betaln(alpha + elapsed / half_life, beta) - betaln(alpha, beta))
    return p


def updated(belief: FloatArray, elapsed: FloatArray, recalled: BoolArray) -> FloatArray:
    """Update beliefs by the outcomes of a review of each card.

    The posterior is taken to the time at which its mean is one half, which is the new half-life,
    and replaced by the Beta distribution that has its mean and variance there. Where an outcome is
    so surprising that numbers end, the belief stays as it was.

    With p for recall after a half-life, recall at the review was ``p**when``.
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
    needed = np.flatnonzero(cards.nth <= last[cards.number])
    by_nth = needed[np.argsort(cards.nth[needed], kind="stable")]
    before = np.full((3, len(reviews)), np.nan)
    before[:, is_first] = np.array(_START)[:, None]
    # All second reviews of cards, then all third ones, and so on.
    for here in np.split(by_nth, np.cumsum(np.bincount(cards.nth[needed])))[1:]:
        row = previous[here]
        before[:, here] = updated(before[:, row], reviews.elapsed[row], reviews.recalled[row])
    before[:, is_first] = np.nan
    return before


@dataclass(frozen=True, slots=True)
class Ebisu(CurveOnly, Algorithm):
    """Ebisu, version 2: a Beta distribution of recall for each card, nothing learned.

    Fasih, *Ebisu: intelligent quiz scheduling*, https://fasiha.github.io/ebisu/. Reads elapsed
    time and pass or fail, not those of same-day reviews; no parameters. Where an
    outcome is so surprising that the update cannot be computed, the belief stays as it was.
    Published row, without same-day reviews: log loss 0.4989, RMSE(bins) 0.1627, AUC 0.6051.
    """

    # It is its own model.
    parameters: ClassVar[tuple[float, ...]] = ()

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> Ebisu:
        return self

    def predict_at(self, reviews: Reviews, rows: IntArray, elapsed: FloatArray) -> FloatArray:
        """Predict recall at other elapsed times; NaN at a card's first review."""
        before = beliefs_before(reviews, rows)
        return uncertain(recall(before[:, rows, None], np.asarray(elapsed, np.float64)))
