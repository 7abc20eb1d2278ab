"""FSRS version 7."""

from __future__ import annotations

import math
from dataclasses import dataclass

from srs_eval.algorithms.fsrs.family import (
    EASIEST,
    EASY,
    GOOD,
    HARD,
    HARDEST,
    FsrsEquations,
    FsrsFitted,
)
from srs_eval.engine.equations import Maths, State, Value
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.engine.reference import Recipe

_REVERSION = 0.01
# Centre of `w[25]` and `w[27]`, recall and share of the short curve, in whole days.
_CENTRE_IN_DAYS = (0.5, 0.1)
_SLOWEST_DECAY, _FASTEST_DECAY = 0.01, 0.95
# Keeps recall off 0 and 1.
_MARGIN = 1e-5


@dataclass(frozen=True)
class Fsrs7Equations(FsrsEquations):
    """Two stabilities, one for minutes and one for months, whose curves are mixed.

    The mixture of both curves, which is what is predicted, moves the long stability and the
    difficulty; the short stability is moved by what its own curve says.
    """

    state_names = ("long_stability", "short_stability", "difficulty")
    parameters = ParameterSpace(
        defaults=(0.1104, 2.2395, 3.9221, 11.7841, 6.1686, 0.6457, 3.6807,
                  1.9795, 0.0, 1.3826, 0.7024, 0.5999, 0.8146, 0.6398, 1.0,
                  1.3207, 0.6707, 3.8668, 0.4416, 0.0934, 1.8631, 0.6162, 1.0869, 0.1567,
                  0.0801, 0.2421, 0.9464, 0.1433, 0.7145, 0.0, 0.5667, 0.3734, 0.5333, 0.3048),
        lower=(*(0.0001,) * 4, 1.0, 0.001, 0.1,
               0.0, 0.0, 0.3, 0.01, 0.1, 0.0, 0.0, 1.0,
               0.0, 0.0, 0.5, 0.001, 0.001, 0.0, 0.0, 1.0,
               0.01, 0.01, 0.2, 0.5, 0.01, 0.1, 0.0, 0.1, 0.0, 0.0, 0.0),
        upper=(50.0, 100.0, 100.0, 100.0, 10.0, 4.0, 4.0,
               4.0, 1.2, 3.0, 1.5, 1.0, 3.5, 1.0, 7.0,
               4.0, 2.0, 6.0, 1.5, 1.0, 5.0, 1.0, 7.0,
               0.25, 0.95, 0.85, 0.99, 1.0, 1.0, 0.9, 1.1, 1.0, 0.6, 0.6),
        spread=(*(math.inf,) * 4, 0.523, 0.2528, 0.4329,
                0.2966, 0.2139, 0.2889, 0.1862, 0.175, 0.3812, 0.3013, 0.9104,
                0.3234, 0.2448, 0.3273, 0.1842, 0.1735, 0.4608, 0.311, 0.864,
                0.0418, 0.2596, 0.0798, 0.0682, 0.1282, 0.1397, 0.1407, 0.1489, 0.2, 0.15, 0.15),
        ordered=((0, 1), (1, 2), (2, 3), (25, 26)),
    )  # fmt: skip

    shortest_stability: float = 0.0001  # In days, whole or not

    def init(self, m: Maths, w: Value, rating: Value) -> State:
        """Both stabilities and the difficulty after the first review."""
        stability = self.first_stability(m, w, rating)
        difficulty = self.first_difficulty(m, w, rating)
        return stability, 0.8 * stability, m.clip(difficulty, EASIEST, HARDEST)

    def curve(self, m: Maths, w: Value, state: State, elapsed: Value) -> Value:
        """Mixture of two power laws, whose shares depend on the state and not on `elapsed`."""
        long, short, difficulty = state
        short_share = w[27] * short ** (-w[29])
        long_share = w[28] * long ** w[30] * m.exp((difficulty - 5) * (w[31] - 0.5))
        by_short = short_share * self._short_curve(m, w, short, elapsed)
        both = by_short + long_share * self._long_curve(m, w, long, difficulty, elapsed)
        return _MARGIN + (1 - 2 * _MARGIN) * both / (short_share + long_share)

    def step(
        self, m: Maths, w: Value, state: State, elapsed: Value, rating: Value, p: Value
    ) -> State:
        """Both stabilities and the difficulty; the stabilities read the old difficulty."""
        long, short, difficulty = state
        own_p = self._short_curve(m, w, short, elapsed)
        new_long = self._updated(m, w[7:15], long, difficulty, rating, p)
        new_short = self._updated(m, w[15:23], short, difficulty, rating, own_p)
        after_failure = m.minimum(new_short, 0.8 * new_long)
        new_short = m.where(rating > 1, new_short, after_failure)
        # Of a failure that was expected, difficulty takes little notice.
        change = -w[6] * (rating - GOOD) * m.where(rating > 1, 1.0, p + 0.1)
        moved = difficulty + change * (HARDEST - difficulty) / 9
        reverted = _REVERSION * self.first_difficulty(m, w, EASY) + (1 - _REVERSION) * moved
        stabilities = self.bounded(m, new_long), self.bounded(m, new_short)
        return *stabilities, m.clip(reverted, EASIEST, HARDEST)

    def _short_curve(self, m: Maths, w: Value, stability: Value, elapsed: Value) -> Value:
        """Power law through `w[25]` at the stability, with a decay that depends on it."""
        decay = m.clip(w[23] * stability ** (w[33] - 0.3), _SLOWEST_DECAY, _FASTEST_DECAY)
        # A slow decay needs a factor beyond single precision; the bound is in the published model.
        factor = m.exp(m.minimum(-m.log(w[25]) / decay, 60.0)) - 1
        return (1 + factor * elapsed / stability) ** (-decay)

    def _long_curve(
        self, m: Maths, w: Value, stability: Value, difficulty: Value, elapsed: Value
    ) -> Value:
        """Power law through `w[26]` at the stability, in a time that difficulty stretches."""
        decay = m.clip(w[24], _SLOWEST_DECAY, _FASTEST_DECAY)
        factor = w[26] ** (-1 / decay) - 1
        stretched = elapsed * m.exp((difficulty - 5) * (w[32] - 0.3))
        return (1 + factor * stretched / stability) ** (-decay)

    def _updated(
        self, m: Maths, w: Value, stability: Value, difficulty: Value, rating: Value, p: Value
    ) -> Value:
        """Stability after a further review: growth after a pass, and no less than a failure leaves.

        `w` are its own eight parameters.
        """
        memory = w[3] * ((stability + 1) ** w[4] - 1) * m.exp((1 - p) * w[5])
        failed = m.minimum(stability, memory)
        bonus = m.where(rating == HARD, w[6], m.where(rating == EASY, w[7], 1.0))
        surprise = m.exp((1 - p) * w[2]) - 1
        growth = m.exp(w[0] - 1.5) * (11 - difficulty) * stability ** (-w[1]) * surprise * bonus
        return m.where(rating > 1, m.maximum(failed, stability * (1 + growth)), failed)


class Fsrs7(FsrsFitted):
    """FSRS-7 (2026), fitted to one user.

    From the public benchmark (srs-benchmark, August 2026),
    https://github.com/open-spaced-repetition/srs-benchmark. Reads elapsed time, best in fractional
    days, and ratings, those of same-day reviews included and by the same rules; 34 parameters. The
    version of January to July 2026 with 35 parameters was another model. Published row of the
    trained model, without same-day reviews: log loss 0.3401, RMSE(bins) 0.0634, AUC 0.7167 (with
    recency 0.3370, 0.0593, 0.7220).

    The published parameters were fitted to fractional days, and predict too little recall in whole
    days, where a card's reviews of one day are 0 days apart and cannot lengthen its short
    stability. There, the prior of ``newton`` has another centre, unless parameters are given: a
    short curve that falls less (`w[25]` 0.5 instead of 0.2421) and has a smaller share (`w[27]` 0.1
    instead of 0.1433), chosen on simulated users and beginnings of real logs.
    """

    name = "fsrs7"
    mathematics = Fsrs7Equations
    same_day = True
    methods = ("newton", "reference", "default")
    later_prior = (0.25, 1.0)
    recipe = Recipe(learning_rate=0.0118, betas=(0.70, 0.98), epochs=9, keep="last", penalty=0.3333)

    def prior_centre(self, *, whole_days: bool) -> tuple[float, ...]:
        """Return the centre of the prior, which depends on the clock."""
        centre = list(super().prior_centre(whole_days=whole_days))
        if whole_days and self.parameters is None:
            centre[25], centre[27] = _CENTRE_IN_DAYS
        return tuple(centre)
