"""FSRS version 5."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from srs_eval.algorithms.fsrs.family import (
    FSRS5_SPREAD,
    GOOD,
    LONGEST_FIRST_STABILITY,
    DampedDifficulty,
    power_forgetting,
)
from srs_eval.algorithms.fsrs.fitting import SHORTEST_IN_FRACTIONAL_DAYS, FsrsWithFirstStabilities
from srs_eval.engine.equations import Maths, State, Value
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.engine.reference import Recipe

_SHORTEST_STABILITY = 0.01
_DECAY = 0.5


@dataclass(frozen=True, slots=True)
class Fsrs5Equations(DampedDifficulty):
    """FSRS-5: the first version with an update of its own for same-day reviews.

    Ye, *The Algorithm*, wiki of fsrs4anki, 2024. Reads elapsed time and ratings, those of
    same-day reviews included; 19 parameters.
    """

    # fmt: off
    parameters: ClassVar[ParameterSpace] = ParameterSpace(
        defaults=(
            0.40255, 1.18385, 3.173, 15.69105, 7.1949, 0.5345, 1.4604, 0.0046, 1.54575, 0.1192,
            1.01925, 1.9395, 0.11, 0.29605, 2.2698, 0.2315, 2.9898, 0.51655, 0.6621,
        ),
        lower=(
            *(_SHORTEST_STABILITY,) * 4, 1.0, 0.001, 0.001, 0.001, 0.0, 0.0,
            0.001, 0.001, 0.001, 0.001, 0.0, 0.0, 1.0, 0.0, 0.0,
        ),
        upper=(
            *(LONGEST_FIRST_STABILITY,) * 4, 10.0, 4.0, 4.0, 0.75, 4.5, 0.8,
            3.5, 5.0, 0.25, 0.9, 4.0, 1.0, 6.0, 2.0, 2.0,
        ),
        spread=FSRS5_SPREAD,
    )
    # fmt: on

    # In days; 0.01 with whole days, 0.0001 with fractional ones
    shortest_stability: float = _SHORTEST_STABILITY

    def curve(self, m: Maths, w: Value, state: State, elapsed: Value) -> Value:
        return power_forgetting(state[0], elapsed, _DECAY)

    def same_day(self, m: Maths, w: Value, stability: Value, rating: Value) -> Value:
        return stability * m.exp(w[17] * (rating - GOOD + w[18]))


class Fsrs5(FsrsWithFirstStabilities):
    """FSRS-5 (Ye, 2024), fitted to one user.

    Formulas: https://github.com/open-spaced-repetition/fsrs4anki/wiki/The-Algorithm. Reads
    elapsed time and ratings, those of same-day reviews included; 19 parameters.
    Published row of the trained model, without same-day reviews: log loss 0.3561, RMSE(bins)
    0.0742, AUC 0.7010.

    Options: see `Fitted`.
    """

    name = "fsrs5"
    mathematics = Fsrs5Equations
    in_fractional_days = SHORTEST_IN_FRACTIONAL_DAYS
    same_day = True
    recipe = Recipe(penalty=1.0)
    first_decay = _DECAY
