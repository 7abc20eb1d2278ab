"""FSRS version 4.5."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from srs_eval.algorithms.fsrs import (
    EASIEST,
    GOOD,
    HARDEST,
    LONGEST_FIRST_STABILITY,
    LONGEST_STABILITY,
    first_stability,
    stability_after_failure,
    stability_after_pass,
)
from srs_eval.algorithms.options import require_choice
from srs_eval.engine.equations import Maths, State, Value
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.engine.recurrent import RecurrentModel
from srs_eval.nouns import IntArray, Reviews

# Makes recall 90 % when the elapsed time equals the stability.
_FACTOR = 19 / 81
_DECAY = -0.5
_SHORTEST_STABILITY = 0.01


@dataclass(frozen=True, slots=True)
class Fsrs45Equations:
    """FSRS-4.5: power-law forgetting, stability and difficulty, 17 parameters.

    Attributes
    ----------
    shortest_stability : float
        In days; 0.01 with whole days.
    """

    state_names: ClassVar[tuple[str, ...]] = ("stability", "difficulty")
    # fmt: off
    parameters: ClassVar[ParameterSpace] = ParameterSpace(
        defaults=(
            0.4872, 1.4003, 3.7145, 13.8206, 5.1618, 1.2298, 0.8975, 0.031, 1.6474,
            0.1367, 1.0461, 2.1072, 0.0793, 0.3246, 1.587, 0.2272, 2.8755,
        ),
        lower=(
            *(_SHORTEST_STABILITY,) * 4, 0.0, 0.01, 0.01, 0.0, 0.0,
            0.0, 0.01, 0.2, 0.01, 0.01, 0.01, 0.0, 1.0,
        ),
        upper=(
            *(LONGEST_FIRST_STABILITY,) * 4, 10.0, 5.0, 5.0, 0.8, 6.0,
            0.8, 5.0, 6.0, 0.4, 0.9, 4.0, 1.0, 10.0,
        ),
    )
    # fmt: on

    shortest_stability: float = _SHORTEST_STABILITY

    def init(self, m: Maths, w: Value, rating: Value) -> State:
        """Stability and difficulty after the first review."""
        difficulty = m.clip(w[4] - w[5] * (rating - GOOD), EASIEST, HARDEST)
        return first_stability(m, w, rating), difficulty

    def curve(self, m: Maths, w: Value, state: State, elapsed: Value) -> Value:
        """Power-law forgetting, at 90 % when `elapsed` equals the stability."""
        stability, _ = state
        return (1 + _FACTOR * elapsed / stability) ** _DECAY

    def step(
        self, m: Maths, w: Value, state: State, elapsed: Value, rating: Value, p: Value
    ) -> State:
        """Stability and difficulty after a further review; both read the old difficulty."""
        stability, difficulty = state
        passed = stability_after_pass(m, w, stability, difficulty, rating, p)
        failed = m.minimum(stability_after_failure(m, w, stability, difficulty, p), stability)
        moved = difficulty - w[6] * (rating - GOOD)
        reverted = w[7] * w[4] + (1 - w[7]) * moved
        return (
            m.clip(m.where(rating > 1, passed, failed), self.shortest_stability, LONGEST_STABILITY),
            m.clip(reverted, EASIEST, HARDEST),
        )


@dataclass(frozen=True, slots=True, init=False)
class Fsrs45:
    """FSRS-4.5 (Ye, 2023).

    Reads elapsed time and ratings, not those of same-day reviews; 17 parameters; not online.
    Published row of the trained model, without same-day reviews: log loss 0.3625,
    RMSE(bins) 0.0764, AUC 0.6891.

    Parameters
    ----------
    fit : {"default"}
        How it learns: ``default`` keeps the parameters as they are.
    parameters : sequence of 17 floats, optional
        By default the published ones.

    Raises
    ------
    ConfigError
        If an option is not one of its choices, or parameters are out of bounds.
    """

    same_day: ClassVar[bool] = False
    online: ClassVar[bool] = False
    sees_truth: ClassVar[bool] = False

    method: str
    parameters: tuple[float, ...]

    def __init__(
        self,
        *,
        fit: Literal["default"] = "default",
        parameters: Sequence[float] | None = None,
    ) -> None:
        require_choice("fsrs45", "fit", fit, ["default"])
        # The option is called fit, as the method that carries it out is.
        object.__setattr__(self, "method", fit)
        checked = Fsrs45Equations.parameters.checked(parameters, "fsrs45")
        object.__setattr__(self, "parameters", checked)

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> RecurrentModel:
        """Return the model with the parameters it was given."""
        return RecurrentModel(Fsrs45Equations(), self.parameters)
