"""FSRS version 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from srs_eval.algorithms.fitted import Fitted
from srs_eval.algorithms.fsrs.family import (
    ExponentialForgetting,
    next_stability,
    quarter_widths,
)
from srs_eval.algorithms.fsrs.fitting import SHORTEST_IN_FRACTIONAL_DAYS
from srs_eval.engine.equations import Maths, State, Value
from srs_eval.engine.parameters import ParameterSpace

_LOWER = (0.1, 1.0, 0.01, -1.0, -1.0, 0.01, -1.0)
_UPPER = (10.0, 10.0, 10.0, -0.01, -0.01, 10.0, -0.01)


@dataclass(frozen=True, slots=True)
class Fsrs1Equations(ExponentialForgetting):
    """FSRS v1: exponential forgetting, and after a failure a stability that counts failures.

    Ye, *The Algorithm*, wiki of fsrs4anki, 2022; after Ye, Su & Cao (2022), KDD. Reads elapsed
    time and ratings; 7 parameters. Difficulty has no upper end in this version.
    """

    state_names: ClassVar[tuple[str, ...]] = ("stability", "difficulty", "lapses")
    parameters: ClassVar[ParameterSpace] = ParameterSpace(
        defaults=(2.0, 5.0, 3.0, -0.7, -0.2, 1.0, -0.3),
        lower=_LOWER,
        upper=_UPPER,
        # None is published.
        spread=quarter_widths(_LOWER, _UPPER),
    )

    shortest_stability: float = 0.01  # In days; 0.01 with whole days

    def init(self, m: Maths, w: Value, rating: Value) -> State:
        """Stability, difficulty and failures after the first review, which may be one."""
        return w[0] * _worth(rating), w[1] - rating + 3, m.where(rating > 1, 0.0, 1.0)

    def step(
        self, m: Maths, w: Value, state: State, elapsed: Value, rating: Value, p: Value
    ) -> State:
        """State after a further review: stability reads the new difficulty, the old count."""
        stability, old_difficulty, lapses = state
        difficulty = m.maximum(old_difficulty + p - _worth(rating) + 0.1, 0.0)
        surprise = m.exp((1 - p) * w[5]) - 1
        ease = (difficulty + 0.1) ** w[3]
        growth = m.exp(w[2]) * ease * stability ** w[4] * surprise
        failed = w[0] * m.exp(w[6] * lapses)
        return (
            next_stability(m, rating, stability * (1 + growth), failed, self.shortest_stability),
            difficulty,
            lapses + m.where(rating > 1, 0.0, 1.0),
        )


def _worth(rating: Value) -> Value:
    """Return a quarter for Again, doubled by every further rating."""
    return 0.25 * 2 ** (rating - 1)


class Fsrs1(Fitted):
    """FSRS v1 (Ye, 2022), fitted to one user.

    Formulas: https://github.com/open-spaced-repetition/fsrs4anki/wiki/The-Algorithm. Reads
    elapsed time and ratings, not those of same-day reviews; 7 parameters. Published
    row of the trained model, without same-day reviews: log loss 0.4913, RMSE(bins) 0.1316, AUC
    0.6295.

    Options: see `Fitted`.
    """

    name = "fsrs1"
    mathematics = Fsrs1Equations
    in_fractional_days = SHORTEST_IN_FRACTIONAL_DAYS
