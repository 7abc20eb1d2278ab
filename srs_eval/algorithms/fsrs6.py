"""FSRS version 6."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from srs_eval.algorithms.fsrs import (
    EASIEST,
    EASY,
    GOOD,
    HARD,
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

_SHORTEST_STABILITY = 0.001


@dataclass(frozen=True, slots=True)
class Fsrs6Equations:
    """FSRS-6: a trainable power law, and an update of its own for same-day reviews.

    Attributes
    ----------
    lowest_floored_rating : int
        Same-day reviews rated at least so do not lower the stability. 2 (Hard) is the rule
        of 2026; until late 2025 it was 3 (Good).
    """

    state_names: ClassVar[tuple[str, ...]] = ("stability", "difficulty")
    # fmt: off
    parameters: ClassVar[ParameterSpace] = ParameterSpace(
        defaults=(
            0.212, 1.2931, 2.3065, 8.2956, 6.4133, 0.8334, 3.0194, 0.001, 1.8722, 0.1666, 0.796,
            1.4835, 0.0614, 0.2629, 1.6483, 0.6014, 1.8729, 0.5425, 0.0912, 0.0658, 0.1542,
        ),
        lower=(
            *(_SHORTEST_STABILITY,) * 4, 1.0, 0.001, 0.001, 0.001, 0.0, 0.0, 0.001,
            0.001, 0.001, 0.001, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.1,
        ),
        upper=(
            *(LONGEST_FIRST_STABILITY,) * 4, 10.0, 4.0, 4.0, 0.75, 4.5, 0.8, 3.5,
            5.0, 0.25, 0.9, 4.0, 1.0, 6.0, 2.0, 2.0, 0.8, 0.8,
        ),
    )
    # fmt: on

    lowest_floored_rating: int = HARD

    def init(self, m: Maths, w: Value, rating: Value) -> State:
        """Stability and difficulty after the first review."""
        difficulty = m.clip(self._first_difficulty(m, w, rating), EASIEST, HARDEST)
        return first_stability(m, w, rating), difficulty

    def curve(self, m: Maths, w: Value, state: State, elapsed: Value) -> Value:
        """Power-law forgetting, at 90 % when `elapsed` equals the stability."""
        stability, _ = state
        decay = -w[20]
        factor = 0.9 ** (1 / decay) - 1
        return (1 + factor * elapsed / stability) ** decay

    def step(
        self, m: Maths, w: Value, state: State, elapsed: Value, rating: Value, p: Value
    ) -> State:
        """Stability and difficulty after a further review; both read the old difficulty."""
        stability, difficulty = state
        passed = stability_after_pass(m, w, stability, difficulty, rating, p)
        failed = m.minimum(
            stability_after_failure(m, w, stability, difficulty, p),
            stability / m.exp(w[17] * w[18]),
        )
        later_day = m.where(rating > 1, passed, failed)
        same_day = stability * self._same_day_growth(m, w, stability, rating)
        moved = difficulty - w[6] * (rating - GOOD) * (HARDEST - difficulty) / 9
        reverted = w[7] * self._first_difficulty(m, w, EASY) + (1 - w[7]) * moved
        return (
            m.clip(
                m.where(elapsed < 1, same_day, later_day), _SHORTEST_STABILITY, LONGEST_STABILITY
            ),
            m.clip(reverted, EASIEST, HARDEST),
        )

    def _first_difficulty(self, m: Maths, w: Value, rating: Value) -> Value:
        return w[4] - m.exp(w[5] * (rating - 1)) + 1

    def _same_day_growth(self, m: Maths, w: Value, stability: Value, rating: Value) -> Value:
        growth = m.exp(w[17] * (rating - GOOD + w[18])) * stability ** (-w[19])
        return m.where(rating >= self.lowest_floored_rating, m.maximum(growth, 1.0), growth)


@dataclass(frozen=True, slots=True, init=False)
class Fsrs6:
    """FSRS-6 (Ye, 2025).

    Reads elapsed time and ratings, those of same-day reviews included; 21 parameters; not
    online. Published rows, without same-day reviews: defaults log loss 0.3661, RMSE(bins)
    0.0927, AUC 0.6956; trained 0.3460, 0.0653, 0.7034.

    Parameters
    ----------
    fit : {"default"}
        How it learns: ``default`` keeps the parameters as they are.
    parameters : sequence of 21 floats, optional
        By default the published ones, medians of fits to single users.

    Raises
    ------
    ConfigError
        If an option is not one of its choices, or parameters are out of bounds.
    """

    same_day: ClassVar[bool] = True
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
        require_choice("fsrs6", "fit", fit, ["default"])
        # The option is called fit, as the method that carries it out is.
        object.__setattr__(self, "method", fit)
        checked = Fsrs6Equations.parameters.checked(parameters, "fsrs6")
        object.__setattr__(self, "parameters", checked)

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> RecurrentModel:
        """Return the model with the parameters it was given."""
        return RecurrentModel(Fsrs6Equations(), self.parameters)
