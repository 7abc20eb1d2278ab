"""FSRS version 2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from srs_eval.algorithms.fitted import Fitted
from srs_eval.algorithms.fsrs.family import (
    EASIEST,
    EASY,
    GOOD,
    HARDEST,
    ExponentialForgetting,
    next_stability,
    quarter_widths,
)
from srs_eval.algorithms.fsrs.fitting import SHORTEST_IN_FRACTIONAL_DAYS
from srs_eval.engine.equations import Maths, State, Value
from srs_eval.engine.parameters import ParameterSpace

_LOWER = (0.1, 0.01, 1.0, -10.0, -10.0, 0.0, 0.0, -2.0, -2.0, 0.01, 0.0, -2.0, 0.01, 0.01)
_UPPER = (10.0, 10.0, 10.0, -0.01, -0.01, 1.0, 5.0, -0.01, -0.01, 2.0, 5.0, -0.01, 1.0, 2.0)


@dataclass(frozen=True, slots=True)
class Fsrs2Equations(ExponentialForgetting):
    """FSRS v2: exponential forgetting, and a difficulty that is drawn back to a mean.

    Ye, *The Algorithm*, wiki of fsrs4anki, 2022. Reads elapsed time and ratings; 14 parameters.
    """

    state_names: ClassVar[tuple[str, ...]] = ("stability", "difficulty")
    parameters: ClassVar[ParameterSpace] = ParameterSpace(
        defaults=(1.0, 1.0, 1.0, -1.0, -1.0, 0.2, 3.0, -0.8, -0.2, 1.3, 2.6, -0.2, 0.6, 1.5),
        lower=_LOWER,
        upper=_UPPER,
        # None is published.
        spread=quarter_widths(_LOWER, _UPPER),
    )

    shortest_stability: float = 0.01  # In days; 0.01 with whole days

    def init(self, m: Maths, w: Value, rating: Value) -> State:
        difficulty = w[2] * (w[3] * (rating - EASY) + 1)
        return w[0] * (w[1] * (rating - 1) + 1), m.clip(difficulty, EASIEST, HARDEST)

    def step(
        self, m: Maths, w: Value, state: State, elapsed: Value, rating: Value, p: Value
    ) -> State:
        """Stability and difficulty after a further review; stability reads the new difficulty."""
        stability, old_difficulty = state
        # What a first Good gives is where difficulty is drawn to.
        target = w[2] * (1 - w[3])
        moved = old_difficulty + w[4] * (rating - GOOD)
        difficulty = m.clip(w[5] * target + (1 - w[5]) * moved, EASIEST, HARDEST)
        surprise = m.exp((1 - p) * w[9]) - 1
        growth = m.exp(w[6]) * difficulty ** w[7] * stability ** w[8] * surprise
        # Later versions leave out the - 1: here a failure in no time leaves no stability.
        shock = m.exp((1 - p) * w[13]) - 1
        failed = w[10] * difficulty ** w[11] * stability ** w[12] * shock
        return (
            next_stability(m, rating, stability * (1 + growth), failed, self.shortest_stability),
            difficulty,
        )


class Fsrs2(Fitted):
    """FSRS v2 (Ye, 2022), fitted to one user.

    Formulas: https://github.com/open-spaced-repetition/fsrs4anki/wiki/The-Algorithm. Reads
    elapsed time and ratings, not those of same-day reviews; 14 parameters.
    Published row of the trained model, without same-day reviews: log loss 0.4532, RMSE(bins)
    0.1095, AUC 0.6512.

    Options: see `Fitted`.
    """

    name = "fsrs2"
    mathematics = Fsrs2Equations
    in_fractional_days = SHORTEST_IN_FRACTIONAL_DAYS
