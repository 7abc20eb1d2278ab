"""FSRS version 7 as it was from January to July 2026, since withdrawn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from srs_eval.algorithms.fitted import Fitted
from srs_eval.algorithms.fsrs.family import (
    EASIEST,
    EASY,
    GOOD,
    HARD,
    HARDEST,
    LONGEST_STABILITY,
    clipped_first_difficulty,
    first_difficulty,
    first_stability,
)
from srs_eval.engine.equations import Maths, State, Value
from srs_eval.engine.parameters import ParameterSpace

_SHORTEST_STABILITY = 0.0001
# Where the parameters of the update after long and after short intervals begin.
_LONG, _SHORT = 7, 16
_REVERSION = 0.01
_MARGIN = 1e-4


@dataclass(frozen=True, slots=True)
class Fsrs7WithdrawnEquations:
    """The 35 parameters of the first FSRS-7: one stability, two curves and two updates.

    Both power laws run through the same stability, and their shares depend on it; after a
    review the stability is a mean of two updates, whose shares depend on the elapsed time.
    """

    state_names: ClassVar[tuple[str, ...]] = ("stability", "difficulty")
    # fmt: off
    parameters: ClassVar[ParameterSpace] = ParameterSpace(
        defaults=(
            0.041, 2.4175, 4.1283, 11.9709, 5.6385, 0.4468, 3.262,
            2.3054, 0.1688, 1.3325, 0.3524, 0.0049, 0.7503, 0.0896, 0.6625, 1.3,
            0.882, 0.3072, 3.5875, 0.303, 0.0107, 0.2279, 2.6413, 0.5594, 1.3,
            2.5, 1.0, 0.0723, 0.1634, 0.5, 0.9555, 0.2245, 0.6232, 0.1362, 0.3862,
        ),
        # Bounds were never published: nothing is fitted.
        lower=(-math.inf,) * 35,
        upper=(math.inf,) * 35,
    )
    # fmt: on

    def init(self, m: Maths, w: Value, rating: Value) -> State:
        return first_stability(m, w, rating), clipped_first_difficulty(m, w, rating)

    def curve(self, m: Maths, w: Value, state: State, elapsed: Value) -> Value:
        """Mixture of two power laws, kept off 0 and 1."""
        return m.clip(_mixture(w, state[0], elapsed), _MARGIN, 1 - _MARGIN)

    def step(
        self, m: Maths, w: Value, state: State, elapsed: Value, rating: Value, p: Value
    ) -> State:
        """Stability and difficulty; the stability reads the old difficulty."""
        stability, difficulty = state
        recall = _mixture(w, stability, elapsed)
        long, short = (
            _updated(m, w, start, stability, difficulty, rating, recall)
            for start in (_LONG, _SHORT)
        )
        share = 1 - w[26] * m.exp(-w[25] * elapsed)
        mixed = share * long + (1 - share) * short
        moved = difficulty - w[6] * (rating - GOOD) * (HARDEST - difficulty) / 9
        target = first_difficulty(m, w, EASY)
        return (
            m.clip(mixed, _SHORTEST_STABILITY, LONGEST_STABILITY),
            m.clip(_REVERSION * target + (1 - _REVERSION) * moved, EASIEST, HARDEST),
        )


def _mixture(w: Value, stability: Value, elapsed: Value) -> Value:
    """Mean of two power laws, weighted by powers of the stability."""
    first, second = (
        (1 + (w[base] ** (-1 / w[decay]) - 1) * elapsed / stability) ** (-w[decay])
        for decay, base in ((27, 29), (28, 30))
    )
    first_weight = w[31] * stability ** (-w[33])
    second_weight = w[32] * stability ** w[34]
    return (first_weight * first + second_weight * second) / (first_weight + second_weight)


def _updated(
    m: Maths,
    w: Value,
    start: int,
    stability: Value,
    difficulty: Value,
    rating: Value,
    recall: Value,
) -> Value:
    """Stability after a further review by one update, of the nine parameters from `start` on."""
    kept = (stability + 1) ** w[start + 5] - 1
    failed = w[start + 3] * difficulty ** (-w[start + 4]) * kept
    failed = m.minimum(stability, failed * m.exp((1 - recall) * w[start + 6]))
    bonus = m.where(rating == HARD, w[start + 7], m.where(rating == EASY, w[start + 8], 1.0))
    surprise = m.exp((1 - recall) * w[start + 2]) - 1
    scale = m.exp(w[start] - 1.5) * (11 - difficulty)
    growth = scale * stability ** (-w[start + 1]) * surprise * bonus
    return m.where(rating > 1, m.maximum(failed, stability * (1 + growth)), failed)


class Fsrs7Withdrawn(Fitted):
    """The first FSRS-7 (January to July 2026), with its published parameters.

    From the public benchmark (srs-benchmark, 2026),
    https://github.com/open-spaced-repetition/srs-benchmark. Reads elapsed time, best in
    fractional days, and ratings, those of same-day reviews included; 35 parameters, not fitted,
    since neither their bounds nor its first step were published. No published row.

    Options: see `Fitted`.
    """

    name = "fsrs7_withdrawn"
    mathematics = Fsrs7WithdrawnEquations
    same_day = True
    methods = ("default",)
