"""FSRS version 3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from srs_eval.algorithms.fitted import Fitted
from srs_eval.algorithms.fsrs.family import (
    EASIEST,
    GOOD,
    HARDEST,
    ExponentialForgetting,
    next_stability,
    quarter_widths,
)
from srs_eval.algorithms.fsrs.fitting import SHORTEST_IN_FRACTIONAL_DAYS
from srs_eval.engine.equations import Maths, State, Value
from srs_eval.engine.parameters import ParameterSpace

_LOWER = (0.1, 0.1, 1.0, -5.0, -5.0, 0.05, 0.0, -0.8, 0.01, 0.5, -2.0, 0.01, 0.01)
_UPPER = (10.0, 5.0, 10.0, -0.1, -0.1, 0.5, 2.0, -0.15, 1.5, 5.0, -0.01, 0.9, 2.0)


@dataclass(frozen=True, slots=True)
class Fsrs3Equations(ExponentialForgetting):
    """FSRS v3: the last version with exponential forgetting.

    Ye, *The Algorithm*, wiki of fsrs4anki, 2022. Reads elapsed time and ratings; 13 parameters.
    """

    state_names: ClassVar[tuple[str, ...]] = ("stability", "difficulty")
    # fmt: off
    parameters: ClassVar[ParameterSpace] = ParameterSpace(
        defaults=(
            0.9605, 1.7234, 4.8527, -1.1917, -1.2956, 0.0573, 1.7352, -0.1673, 1.065, 1.8907,
            -0.3832, 0.5867, 1.0721,
        ),
        lower=_LOWER,
        upper=_UPPER,
        # None is published.
        spread=quarter_widths(_LOWER, _UPPER),
    )
    # fmt: on

    shortest_stability: float = 0.01  # In days; 0.01 with whole days

    def init(self, m: Maths, w: Value, rating: Value) -> State:
        difficulty = w[2] + w[3] * (rating - GOOD)
        return w[0] + w[1] * (rating - 1), m.clip(difficulty, EASIEST, HARDEST)

    def step(
        self, m: Maths, w: Value, state: State, elapsed: Value, rating: Value, p: Value
    ) -> State:
        """Stability and difficulty after a further review; stability reads the new difficulty."""
        stability, old_difficulty = state
        moved = old_difficulty + w[4] * (rating - GOOD)
        difficulty = m.clip(w[5] * w[2] + (1 - w[5]) * moved, EASIEST, HARDEST)
        surprise = m.exp((1 - p) * w[8]) - 1
        growth = m.exp(w[6]) * (11 - difficulty) * stability ** w[7] * surprise
        kept = difficulty ** w[10] * stability ** w[11]
        failed = w[9] * kept * m.exp((1 - p) * w[12])
        return (
            next_stability(m, rating, stability * (1 + growth), failed, self.shortest_stability),
            difficulty,
        )


class Fsrs3(Fitted):
    """FSRS v3 (Ye, 2022), fitted to one user.

    Formulas: https://github.com/open-spaced-repetition/fsrs4anki/wiki/The-Algorithm. Reads
    elapsed time and ratings, not those of same-day reviews; 13 parameters.
    Published row of the trained model, without same-day reviews: log loss 0.4364, RMSE(bins)
    0.1097, AUC 0.6605.

    Options: see `Fitted`.
    """

    name = "fsrs3"
    mathematics = Fsrs3Equations
    in_fractional_days = SHORTEST_IN_FRACTIONAL_DAYS
