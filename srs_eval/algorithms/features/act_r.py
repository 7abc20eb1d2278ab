"""ACT-R: activation of a memory by every time it was used."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from srs_eval.algorithms.features.log_odds import FittedLogOdds, LogOddsOf
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

    def at(self, history: History, rows: IntArray, elapsed: FloatArray) -> LogOddsOf:
        """Find the cards of `rows`, up to the last of these on each, by falling length."""
        begins, card = np.unique(history.place[rows] - history.nth[rows], return_inverse=True)
        lengths = np.zeros(len(begins), np.int64)
        np.maximum.at(lengths, card, history.nth[rows])
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

    After Pavlik & Anderson (2003), *An ACT-R Model of the Spacing Effect*, Proceedings of the
    5th International Conference on Cognitive Modeling. Reads elapsed time, and whether there
    was a review, but neither ratings nor outcomes; 5 parameters. Published row,
    without same-day reviews: log loss 0.4033, RMSE(bins) 0.1074, AUC 0.5225.
    """

    name = "act_r"
    mathematics = ActivationEquations
