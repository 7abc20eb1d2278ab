"""Log-odds of recall as a function of the whole history of a card: DASH and ACT-R."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

import numpy as np
from scipy.special import expit

from srs_eval.algorithms.algorithm import Learned
from srs_eval.algorithms.fitted import Fitted
from srs_eval.algorithms.history import HELD, CurveOnly, History, history_of
from srs_eval.algorithms.recurrent.model import with_binary_ratings
from srs_eval.data.reviews import FloatArray, IntArray, Reviews
from srs_eval.engine.compiled import Fisher, Gradient
from srs_eval.engine.equations import uncertain
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.engine.reference import Recipe

_INF = math.inf
_WINDOWS = (1.0, 7.0, 30.0, _INF)
_DASH = (0.2024, 0.5967, 0.1255, 0.6039, -0.1485, 0.572, 0.0933, 0.4801, 0.787)
_WITH_SAME_DAY = (-0.1766, 0.4483, -0.3618, 0.5953, -0.5104, 0.8609, -0.3643, 0.6447, 1.2815)
# In days: of younger reviews the power law would make too much.
_YOUNGEST = 0.1
_SECONDS = 86400.0
# Derivatives by the parameters that strength depends on: a, c and h.
_A, _C, _H = range(3)

# From the parameters to log-odds [rows] and their derivatives [rows, parameters].
LogOddsOf = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


class LogOdds(Protocol):
    """A memory model as mathematics: log-odds of recall with their derivatives."""

    @property
    def parameters(self) -> ParameterSpace:
        """Defaults, bounds and spread of its numbers."""

    def at(self, history: History, rows: IntArray, elapsed: FloatArray) -> LogOddsOf:
        """Gather what the history before each of `rows` says, whatever the parameters are.

        Only the last interval may be other than the log's: `elapsed` days.
        """


def linear(features: FloatArray) -> LogOddsOf:
    """Log-odds that are a weighted sum of features [rows, parameters]."""
    return lambda w: (features @ w, features)


@dataclass(frozen=True, slots=True)
class LogOddsModel(CurveOnly):
    """A function with numbers in it: a memory model with a forgetting curve."""

    log_odds: LogOdds  # The model as mathematics
    parameters: tuple[float, ...]  # Its numbers
    learned: Learned = field(default_factory=Learned)  # How they were found
    binary: bool = False  # Whether Hard and Easy are taken for Good

    def predict_at(self, reviews: Reviews, rows: IntArray, elapsed: FloatArray) -> FloatArray:
        """Predict recall at other elapsed times, [len(rows), k]; NaN at a card's first review."""
        history = history_of(with_binary_ratings(reviews) if self.binary else reviews)
        times = np.asarray(elapsed, np.float64)
        each = np.repeat(rows, times.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):
            log_odds, _ = self.log_odds.at(history, each, times.ravel())(np.array(self.parameters))
        p = np.where(history.cards.nth[each] > 0, expit(log_odds), np.nan)
        return uncertain(p).reshape(times.shape)


@dataclass(frozen=True, slots=True)
class LogLoss:
    """Sum of weight * log loss, as a function of the parameters."""

    log_odds: LogOddsOf  # Log-odds of the training reviews and their derivatives
    # [rows]: Outcomes, and what each counts
    recalled: FloatArray
    weight: FloatArray

    def gradient(self, w: FloatArray) -> Gradient:
        loss, gradient, _ = self.fisher(w)
        return Gradient(loss, gradient)

    def fisher(self, w: FloatArray) -> Fisher:
        # Callers refuse results that are not finite.
        with np.errstate(over="ignore", invalid="ignore"):
            log_odds, slopes = self.log_odds(w)
            p = expit(log_odds)
            against = np.where(self.recalled > 0, -log_odds, log_odds)
            loss = float(self.weight @ np.logaddexp(0.0, against))
            gradient = self.weight * (p - self.recalled) @ slopes
            information = (slopes * (self.weight * p * (1 - p))[:, None]).T @ slopes
        return Fisher(loss, gradient, information)


class FittedLogOdds(Fitted):
    """Base of algorithms whose equations are log-odds that look back at whole histories."""

    kind_of_model = LogOddsModel
    # In double precision a fit can end nearer to the minimum than in single precision; where
    # parameters stand in for each other, steps with little gain can still add up.
    tolerance = 1e-7
    decimals_in_fractions = 4

    def loss(self, equations: LogOdds, reviews: Reviews) -> Callable[..., LogLoss]:
        history = history_of(reviews)

        def loss(rows: IntArray, weight: FloatArray, *, public: bool = True) -> LogLoss:
            function = equations.at(history, rows, reviews.elapsed[rows])
            return LogLoss(function, reviews.recalled[rows].astype(np.float64), weight)

        return loss


@dataclass(frozen=True, slots=True)
class WindowCounts:
    """Log-odds that are linear in logarithms of how often a card was seen, and recalled."""

    # Weights of reviews and of passes in the last day, week, month and ever, and the bias
    defaults: tuple[float, ...] = _DASH
    # In days: in each window a review counts exp(-age / time constant). Infinite where all count
    # alike
    time_constants: tuple[float, ...] = (_INF,) * len(_WINDOWS)

    @property
    def parameters(self) -> ParameterSpace:
        """Without bounds. No spread is published; this is about the size of the weights."""
        return ParameterSpace(self.defaults, (-_INF,) * 9, (_INF,) * 9, spread=(0.5,) * 9)

    def at(self, history: History, rows: IntArray, elapsed: FloatArray) -> LogOddsOf:
        """Count earlier reviews of each row's card, and passes, by window; then logarithms."""
        counts = np.empty((len(rows), 2 * len(_WINDOWS)))
        recalled = history.of_places(history.reviews.recalled)
        for pairs in history.pairs(rows, elapsed):
            passed = recalled[pairs.place]
            for number, window in enumerate(_WINDOWS):
                counted = np.exp(-pairs.age / self.time_constants[number]) * (pairs.age <= window)
                counts[pairs.rows, 2 * number] = pairs.sums(counted)
                counts[pairs.rows, 2 * number + 1] = pairs.sums(counted * passed)
        return linear(np.column_stack([np.log1p(counts), np.ones(len(rows))]))


class Dash(FittedLogOdds):
    """DASH: how often a card was seen and recalled in the last day, week, month, and ever.

    After Lindsey, Shroyer, Pashler & Mozer (2014), *Improving Students' Long-Term Knowledge
    Retention Through Personalized Review*, Psychological Science 25,
    https://doi.org/10.1177/0956797613504302; of their model only the part that reads study history.
    Reads elapsed time and pass or fail; 9 parameters. With same-day reviews in the log it starts at
    other parameters, as published. Published row, without same-day reviews: log loss 0.3682,
    RMSE(bins) 0.0838, AUC 0.6311.
    """

    name = "dash"
    # Its inputs are eight counts, which all have the same length.
    recipe = Recipe(sort=False, longest_history=None, decimals=None)
    counts: ClassVar[WindowCounts] = WindowCounts()

    def equations(self, *, whole_days: bool) -> WindowCounts:
        is_same_day = self.same_day or not whole_days
        return replace(self.counts, defaults=_WITH_SAME_DAY) if is_same_day else self.counts


class DashMcm(Dash):
    """DASH[MCM]: the counts of DASH, in which reviews fade with age.

    The time constants are those of the multiscale context model (Mozer, Pashler, Cepeda, Lindsey &
    Vul 2009, *Predicting the Optimal Spacing of Study*, NIPS 22), combined with DASH by Lindsey et
    al. (2014). Reads elapsed time and pass or fail; 9 parameters. With same-day reviews in the log
    it starts where DASH does, as published. Published row, without same-day reviews: log loss
    0.3688, RMSE(bins) 0.0861, AUC 0.6343.
    """

    name = "dash_mcm"
    counts = WindowCounts(
        defaults=(0.2783, 0.8131, 0.4252, 1.0056, -0.1527, 0.6455, 0.1409, 0.669, 0.843),
        time_constants=(0.2434, 1.9739, 16.0090, 129.8426),
    )


@dataclass(frozen=True, slots=True)
class FadingTraces:
    """Log-odds that grow with the logarithm of what is left of all earlier reviews.

    Parameters: slope of the logarithm, exponent of forgetting, what a failure and what a pass
    leaves after one day, and the bias.
    """

    # No spread is published; this is about the size of the parameters.
    parameters: ClassVar[ParameterSpace] = ParameterSpace(
        defaults=(1.4164, 0.516, -0.0564, 1.9223, 1.0549),
        lower=(0.001, 0.001, -_INF, -_INF, -_INF),
        upper=(_INF,) * 5,
        spread=(0.5,) * 5,
    )

    def at(self, history: History, rows: IntArray, elapsed: FloatArray) -> LogOddsOf:
        """Remember which reviews are meant: how they fade depends on the parameters."""
        recalled = history.of_places(history.reviews.recalled)

        def log_odds(w: FloatArray) -> tuple[FloatArray, FloatArray]:
            slope, exponent, failed, passed, bias = w
            # What failures and passes leave, and the derivative of both by the exponent.
            failures, passes, by_exponent = np.empty((3, len(rows)))
            for pairs in history.pairs(rows, elapsed):
                log_age = np.log(np.maximum(pairs.age, _YOUNGEST))
                trace = np.exp(-exponent * log_age) * (pairs.age > _YOUNGEST)
                after_pass = recalled[pairs.place]
                worth = np.where(after_pass > 0, passed, failed)
                failures[pairs.rows] = pairs.sums(trace * (1 - after_pass))
                passes[pairs.rows] = pairs.sums(trace * after_pass)
                by_exponent[pairs.rows] = pairs.sums(-log_age * trace * worth)
            total = failures * failed + passes * passed
            logarithm = np.log1p(np.maximum(total, 0.0))
            by_total = np.where(total > 0, slope / (1 + np.maximum(total, 0.0)), 0.0)
            slopes = (logarithm, by_exponent, failures, passes, np.ones(len(total)))
            derivatives = np.stack(slopes, axis=1)
            derivatives[:, 1:4] *= by_total[:, None]
            return slope * logarithm + bias, derivatives

        return log_odds


class DashActR(FittedLogOdds):
    """DASH[ACT-R]: every earlier review leaves a trace that fades by a power of its age.

    After the DASH of Lindsey et al. (2014), with the forgetting of ACT-R in place of time windows,
    in the form of Randazzo (2022), *Memory Models for Spaced Repetition Systems*. Reads elapsed
    time and pass or fail, passing over reviews less than 0.1 days ago; 5 parameters. Published row,
    without same-day reviews: log loss 0.3728, RMSE(bins) 0.0886, AUC 0.6239.
    """

    name = "dash_act_r"
    mathematics = FadingTraces


@dataclass(frozen=True, slots=True)
class ActivationEquations:
    """Activation m of a memory, and log-odds of recall (m - threshold) / noise.

    At review k, e to the power of m is the strength: the sum over earlier reviews j of
    max(1, 86400 h (T_k - T_j)) ** -(c exp(m_j) + a), T in days. So what was strong when it was
    reviewed decays fast, which makes spaced reviews worth more than massed ones. Before a
    second review the strength is 0. Parameters: decay intercept a, decay scale c, noise,
    threshold, and h, what a second between sessions counts.
    """

    # No spread is published; a quarter of the width between bounds.
    parameters: ClassVar[ParameterSpace] = ParameterSpace(
        defaults=(0.176786766570677, 0.216967308403809, 0.254893976981164, -0.704205679427144,
                  0.025),
        lower=(0.001, 0.001, 0.001, -_INF, 0.001),
        upper=(1.0, 1.0, 1.0, -0.001, 1.0),
        spread=(0.25, 0.25, 0.25, 0.5, 0.25),
    )  # fmt: skip

    def at(self, history: History, rows: IntArray, elapsed: FloatArray) -> LogOddsOf:
        """Find the cards of `rows`, up to the last of these on each, by falling length."""
        begins, card = np.unique(history.place[rows] - history.cards.nth[rows], return_inverse=True)
        lengths = np.zeros(len(begins), np.int64)
        np.maximum.at(lengths, card, history.cards.nth[rows])
        longest_first = np.argsort(-lengths, kind="stable")
        cards = begins[longest_first], lengths[longest_first]

        def log_odds(w: FloatArray) -> tuple[FloatArray, FloatArray]:
            strength, by = _strengths(w, history, *cards)
            last, last_by = np.ones(len(rows)), np.zeros((3, len(rows)))
            for pairs in history.pairs(rows, elapsed):
                trace, trace_by = _trace(w, pairs.age, strength[pairs.place], by[:, pairs.place])
                # Nothing precedes a first review; any number will do there.
                last[pairs.rows] = np.where(pairs.counts > 0, pairs.sums(trace), 1.0)
                for number in range(3):
                    last_by[number, pairs.rows] = pairs.sums(trace_by[number])
            noise, threshold, activation = w[2], w[3], np.log(last)
            slopes = np.empty((len(rows), len(w)))
            slopes[:, [0, 1, 4]] = last_by.T / (last * noise)[:, None]
            slopes[:, 2] = (threshold - activation) / noise**2
            slopes[:, 3] = -1 / noise
            return (activation - threshold) / noise, slopes

        return log_odds


def _strengths(
    w: FloatArray, history: History, begins: IntArray, lengths: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Strength at the first reviews of cards, so many of each, by place; derivatives [3, places].

    Longest cards come first. As many as fit into memory are computed side by side.
    """
    size, first = len(history.clock), 0
    strength, by = np.zeros(size), np.zeros((3, size))
    while first < len(begins) and lengths[first]:
        along = np.arange(lengths[first])
        block = slice(first, first + max(HELD // len(along), 1))
        places = begins[block, None] + along
        is_review = along < lengths[block, None]
        clock = history.clock[np.where(is_review, places, 0)]
        own, own_by = np.zeros(clock.shape), np.zeros((3, *clock.shape))
        for nth in range(1, len(along)):
            cards = int(np.searchsorted(-lengths[block], -nth))  # those that have an nth review
            age = clock[:cards, nth, None] - clock[:cards, :nth]
            trace, trace_by = _trace(w, age, own[:cards, :nth], own_by[:, :cards, :nth])
            own[:cards, nth] = trace.sum(axis=-1)
            own_by[:, :cards, nth] = trace_by.sum(axis=-1)
        strength[places[is_review]] = own[is_review]
        by[:, places[is_review]] = own_by[:, is_review]
        first = block.stop
    return strength, by


def _trace(
    w: FloatArray, age: FloatArray, strength: FloatArray, by: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return what earlier reviews add to the strength now, with its derivatives by a, c, h."""
    a, c, _, _, h = w
    seconds = _SECONDS * h * age
    log_seconds = np.log(np.maximum(seconds, 1.0))
    decay = c * strength + a
    trace = np.exp(-decay * log_seconds)
    by_decay = -trace * log_seconds
    trace_by = c * by
    trace_by[_A] += 1.0
    trace_by[_C] += strength
    trace_by *= by_decay
    trace_by[_H] -= trace * decay * (seconds > 1) / h
    return trace, trace_by


class ActR(FittedLogOdds):
    """ACT-R: a memory is as active as its uses are many, recent, and spaced.

    After Pavlik & Anderson (2003), *An ACT-R Model of the Spacing Effect*, Proceedings of the 5th
    International Conference on Cognitive Modeling. Reads elapsed time, and whether there was a
    review, but neither ratings nor outcomes; 5 parameters. Published row, without same-day reviews:
    log loss 0.4033, RMSE(bins) 0.1074, AUC 0.5225.
    """

    name = "act_r"
    mathematics = ActivationEquations
