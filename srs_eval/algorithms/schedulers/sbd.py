"""SBD: stability, brittleness, difficulty."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from srs_eval.algorithms.fitted import Fitted
from srs_eval.engine.equations import Maths, State, Value
from srs_eval.engine.parameters import ParameterSpace

_SHORTEST, _LONGEST = math.log(0.001), math.log(36500.0)
_MOST_BRITTLE = 50.0
_LEAST_P = 1e-6
_LARGEST_EXPONENT = 30.0
# In days: what stands for no time at all.
_SHORTEST_ELAPSED = 1e-9


@dataclass(frozen=True, slots=True)
class SbdEquations:
    """A power law whose exponent grows with what a card was forgotten or found hard.

    Parameters: the logarithms of the stabilities after a first Again and a first Easy (the latter
    counts as the former where it is smaller), the exponent that compresses time, logarithm and
    slope of the forgetting exponent, logarithm of what a review adds at once, and logarithm of the
    brittleness of a new card.
    """

    state_names: ClassVar[tuple[str, ...]] = ("log_stability", "last_grade", "brittleness")
    parameters: ClassVar[ParameterSpace] = ParameterSpace(
        defaults=(-2.803101, 1.386926, 1.739235, -1.819954, 0.529839, -0.886052, -1.393709),
        lower=(_SHORTEST, _SHORTEST, 0.5, -math.inf, 0.0, -math.inf, -math.inf),
        upper=(_LONGEST, _LONGEST, 20.0, math.inf, math.inf, math.inf, math.inf),
        spread=(1.754, 1.2339, 0.5003, 0.546, 0.0989, 1.1685, 0.7778),
    )

    def init(self, m: Maths, w: Value, rating: Value) -> State:
        """Logarithm of the stability, grade from 0 to 3, and brittleness."""
        return w[0] + (rating - 1) * _log_ratio(m, w), rating - 1, m.maximum((3 - rating) / 2, 0.0)

    def curve(self, m: Maths, w: Value, state: State, elapsed: Value) -> Value:
        """Power law of compressed time, below 1 even at once; never within 1e-6 of 0 or 1."""
        log_stability, last_grade, brittleness = state
        log_time = m.log(m.maximum(elapsed, _SHORTEST_ELAPSED)) / w[2]
        at_once = (2 * w[5] / w[2] - last_grade * _log_ratio(m, w) + log_stability) / 2
        log_age = at_once + _softplus(m, log_time - at_once)
        decay = _softplus(m, log_age - log_stability)
        p = _exp(m, -_exponent(m, w, brittleness) * decay)
        return m.clip(p, _LEAST_P, 1 - _LEAST_P)

    def step(
        self, m: Maths, w: Value, state: State, elapsed: Value, rating: Value, p: Value
    ) -> State:
        """State after a further review: a pass adds to the stability, a failure divides it.

        Again adds 1 to the brittleness, Hard 0.5.
        """
        log_stability, _, brittleness = state
        passed = log_stability - m.log(p) / _exponent(m, w, brittleness)
        failed = log_stability + w[4] * m.log(1 - p)
        stability = m.clip(m.where(rating > 1, passed, failed), _SHORTEST, _LONGEST)
        brittleness = m.minimum(brittleness + m.maximum((3 - rating) / 2, 0.0), _MOST_BRITTLE)
        return stability, rating - 1, brittleness


def _log_ratio(m: Maths, w: Value) -> Value:
    """Logarithm of the ratio of the stabilities after first ratings that follow each other."""
    return (m.maximum(w[0], w[1]) - w[0]) / 3


def _exponent(m: Maths, w: Value, brittleness: Value) -> Value:
    """Exponent of the power law."""
    return _exp(m, w[3] + w[4] * m.log(_exp(m, w[6]) + brittleness))


def _exp(m: Maths, value: Value) -> Value:
    return m.exp(m.clip(value, -_LARGEST_EXPONENT, _LARGEST_EXPONENT))


def _softplus(m: Maths, value: Value) -> Value:
    """Logarithm of 1 + e to the power of `value`, which never overflows."""
    return m.maximum(value, 0.0) + m.log(1 + m.exp(-m.maximum(value, -value)))


class Sbd(Fitted):
    """SBD, fitted to one user.

    Stability, brittleness and difficulty: andersschill (2026),
    https://doi.org/10.5281/zenodo.22727105, repository
    ``andersschill/memory-model-benchmark-for-spaced-repetition``. Reads elapsed time in fractional
    days and ratings, those of same-day reviews included; 7 parameters. Published row, without
    same-day reviews: log loss 0.3410, RMSE(bins) 0.06018, AUC 0.7152. Its own training is
    full-batch L-BFGS with ``steep`` recency and a prior of weight 2, whose minimum ``newton``
    finds.
    """

    name = "sbd"
    mathematics = SbdEquations
    same_day = True
    methods = ("newton", "default")
    own_recency = "steep"
    own_prior_weight = 2.0
