"""ACT-R: activation of a memory by every time it was used."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from srs_eval.algorithms.features.log_odds import FittedLogOdds
from srs_eval.algorithms.history import HELD, History
from srs_eval.data.reviews import FloatArray, IntArray
from srs_eval.engine.parameters import ParameterSpace

_SECONDS = 86400.0
# Derivatives by the parameters that strength depends on: a, c and h.
_A, _C, _H = range(3)


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
        defaults=(
            0.176786766570677,
            0.216967308403809,
            0.254893976981164,
            -0.704205679427144,
            0.025,
        ),
        lower=(0.001, 0.001, 0.001, -math.inf, 0.001),
        upper=(1.0, 1.0, 1.0, -0.001, 1.0),
        spread=(0.25, 0.25, 0.25, 0.5, 0.25),
    )

    def at(self, history: History, rows: IntArray, elapsed: FloatArray) -> Activation:
        """Find the cards of `rows`, up to the last of these on each."""
        begin = history.place[rows] - history.nth[rows]
        begins, card = np.unique(begin, return_inverse=True)
        lengths = np.zeros(len(begins), np.int64)
        np.maximum.at(lengths, card, history.nth[rows])
        longest_first = np.argsort(-lengths, kind="stable")
        return Activation(history, rows, elapsed, begins[longest_first], lengths[longest_first])


@dataclass(frozen=True, slots=True)
class Activation:
    """Activation at each of `rows`, as a function of the parameters."""

    history: History
    rows: IntArray
    elapsed: FloatArray
    # [cards]: Where each card begins, and how many of its reviews come before one of `rows`; by
    # falling length
    begins: IntArray
    lengths: IntArray

    def __call__(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        noise, threshold = w[2], w[3]
        strength, by = self._last_strengths(w, *self._strengths(w))
        activation = np.log(strength)
        slopes = np.empty((len(self.rows), len(w)))
        slopes[:, [0, 1, 4]] = by.T / (strength * noise)[:, None]
        slopes[:, 2] = (threshold - activation) / noise**2
        slopes[:, 3] = -1 / noise
        return (activation - threshold) / noise, slopes

    def _strengths(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Strength at every earlier review by its place, and derivatives [3, places]."""
        size = len(self.history.clock)
        strength, by = np.zeros(size), np.zeros((3, size))
        first = 0
        while first < len(self.begins) and self.lengths[first]:
            # As many cards as fit into memory, side by side: the longest sets the width.
            width = int(self.lengths[first])
            block = slice(first, first + max(HELD // width, 1))
            along = np.arange(width)
            places = self.begins[block, None] + along
            is_review = along < self.lengths[block, None]
            clock = self.history.clock[np.where(is_review, places, 0)]
            strengths, slopes = _card_by_card(w, clock, self.lengths[block])
            strength[places[is_review]] = strengths[is_review]
            by[:, places[is_review]] = slopes[:, is_review]
            first = block.stop
        return strength, by

    def _last_strengths(
        self, w: FloatArray, strength: FloatArray, by: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Strength at each of `rows` from those before, and derivatives [3, rows]."""
        last, last_by = np.ones(len(self.rows)), np.zeros((3, len(self.rows)))
        for pairs in self.history.pairs(self.rows, self.elapsed):
            trace, trace_by = _trace(w, pairs.age, strength[pairs.place], by[:, pairs.place])
            # Nothing precedes a first review; any number will do there.
            last[pairs.rows] = np.where(pairs.counts > 0, pairs.sums(trace), 1.0)
            for number in range(3):
                last_by[number, pairs.rows] = pairs.sums(trace_by[number])
        return last, last_by


def _card_by_card(
    w: FloatArray, clock: FloatArray, lengths: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Strengths [cards, reviews] and derivatives [3, cards, reviews] of cards side by side."""
    strength, by = np.zeros(clock.shape), np.zeros((3, *clock.shape))
    for nth in range(1, clock.shape[1]):
        cards = int(np.searchsorted(-lengths, -nth))  # those that have an nth review
        age = clock[:cards, nth, None] - clock[:cards, :nth]
        trace, trace_by = _trace(w, age, strength[:cards, :nth], by[:, :cards, :nth])
        strength[:cards, nth] = trace.sum(axis=-1)
        by[:, :cards, nth] = trace_by.sum(axis=-1)
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

    After Pavlik & Anderson (2003), *An ACT-R Model of the Spacing Effect*, Proceedings of the
    5th International Conference on Cognitive Modeling. Reads elapsed time, and whether there
    was a review, but neither ratings nor outcomes; 5 parameters. Published row,
    without same-day reviews: log loss 0.4033, RMSE(bins) 0.1074, AUC 0.5225.
    """

    name = "act_r"
    mathematics = ActivationEquations
