"""ACT-R: activation of a memory by every time it was used."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from srs_eval.algorithms.features.log_odds import FittedLogOdds
from srs_eval.algorithms.history import History
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
        """Find the earlier reviews of the cards of `rows`, the second of all cards first."""
        last = np.zeros(len(history.cards.begins), np.int64)
        np.maximum.at(last, history.cards.number[rows], history.nth[rows])
        earlier = np.flatnonzero((history.nth > 0) & (history.nth < last[history.cards.number]))
        counts = np.bincount(history.nth[earlier])
        by_nth = earlier[np.argsort(history.nth[earlier], kind="stable")]
        return Activation(history, rows, elapsed, tuple(np.split(by_nth, np.cumsum(counts)[:-1])))


@dataclass(frozen=True, slots=True)
class Activation:
    """Activation at each of `rows`, as a function of the parameters."""

    history: History
    rows: IntArray
    elapsed: FloatArray
    earlier: tuple[IntArray, ...]  # Rows that come before one of `rows` on its card: nth ones

    def __call__(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        noise, threshold = w[2], w[3]
        # Strength at every earlier review by its place, and derivatives by a, c and h
        size = len(self.history.clock)
        earlier, earlier_by = np.zeros(size), np.zeros((3, size))
        for nth in self.earlier:
            place, elapsed = self.history.place[nth], self.history.reviews.elapsed[nth]
            strength, by = self._strengths(w, nth, elapsed, earlier, earlier_by)
            earlier[place], earlier_by[:, place] = strength, by
        strength, by = self._strengths(w, self.rows, self.elapsed, earlier, earlier_by)
        # Nothing precedes a first review; any number will do there.
        strength = np.where(self.history.nth[self.rows] > 0, strength, 1.0)
        activation = np.log(strength)
        slopes = np.empty((len(self.rows), len(w)))
        slopes[:, [0, 1, 4]] = by.T / (strength * noise)[:, None]
        slopes[:, 2] = (threshold - activation) / noise**2
        slopes[:, 3] = -1 / noise
        return (activation - threshold) / noise, slopes

    def _strengths(
        self,
        w: FloatArray,
        rows: IntArray,
        elapsed: FloatArray,
        strength: FloatArray,
        by: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Strength at `rows` from that at the reviews before, and derivatives [3, rows]."""
        last, last_by = np.zeros(len(rows)), np.zeros((3, len(rows)))
        for pairs in self.history.pairs(rows, elapsed):
            trace, trace_by = _trace(w, pairs.age, strength[pairs.place], by[:, pairs.place])
            last[pairs.rows] = pairs.sums(trace)
            for number in range(3):
                last_by[number, pairs.rows] = pairs.sums(trace_by[number])
        return last, last_by


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
