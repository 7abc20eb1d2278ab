"""FSRS versions 4 and 4.5."""

from __future__ import annotations

from typing import ClassVar

from srs_eval.algorithms.fsrs.family import (
    EASIEST,
    FSRS5_SPREAD,
    GOOD,
    HARDEST,
    LONGEST_FIRST_STABILITY,
    SHORTEST_IN_FRACTIONAL_DAYS,
    FsrsEquations,
    FsrsWithFirstStabilities,
    first_stability,
    stability_after_failure,
    stability_after_pass,
)
from srs_eval.engine.equations import Maths, State, Value
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.engine.reference import Recipe


def spread_like_fsrs5(first: float, moved: float) -> tuple[float, ...]:
    """Spread of the 17 parameters of FSRS v4 and 4.5, for which none is published.

    First stabilities, reversion of difficulty and both updates of stability play the same
    part on the same scale as in FSRS-5, whose spread they take. `w[4]` to `w[6]` move
    difficulty along a straight line there and along a curve here: theirs is a guess, a quarter of
    the way between the bounds.
    """
    return (*FSRS5_SPREAD[:4], first, moved, moved, *FSRS5_SPREAD[7:17])


class Fsrs4Equations(FsrsEquations):
    """Power-law forgetting, and a first stability for each rating."""

    decay: ClassVar[float] = 1.0
    # fmt: off
    parameters: ClassVar[ParameterSpace] = ParameterSpace(
        defaults=(
            0.4, 0.9, 2.3, 10.9, 4.93, 0.94, 0.86, 0.01, 1.49,
            0.14, 0.94, 2.18, 0.05, 0.34, 1.26, 0.29, 2.61,
        ),
        lower=(
            *(0.01,) * 4, 1.0, 0.1, 0.1, 0.0, 0.0,
            0.1, 0.01, 0.5, 0.01, 0.01, 0.01, 0.0, 1.0,
        ),
        upper=(
            *(LONGEST_FIRST_STABILITY,) * 4, 10.0, 5.0, 5.0, 0.5, 3.0,
            0.8, 2.5, 5.0, 0.2, 0.9, 2.0, 1.0, 4.0,
        ),
        spread=spread_like_fsrs5(2.25, 1.225),
    )
    # fmt: on

    def init(self, m: Maths, w: Value, rating: Value) -> State:
        stability = first_stability(m, w, rating)
        return stability, m.clip(w[4] - w[5] * (rating - GOOD), EASIEST, HARDEST)

    def step(
        self, m: Maths, w: Value, state: State, elapsed: Value, rating: Value, p: Value
    ) -> State:
        """Stability and difficulty after a further review; both read the old difficulty."""
        stability, difficulty = state
        passed = stability_after_pass(m, w, stability, difficulty, rating, p)
        failed = self.after_failure(m, w, stability, difficulty, p)
        updated = self.bounded(m, m.where(rating > 1, passed, failed))
        moved = difficulty - w[6] * (rating - GOOD)
        return updated, m.clip(w[7] * w[4] + (1 - w[7]) * moved, EASIEST, HARDEST)

    def after_failure(
        self, m: Maths, w: Value, stability: Value, difficulty: Value, p: Value
    ) -> Value:
        """Stability after a failure on a later day."""
        return stability_after_failure(m, w, stability, difficulty, p)


class Fsrs4(FsrsWithFirstStabilities):
    """FSRS v4 (Ye, 2023), fitted to one user.

    Formulas: https://github.com/open-spaced-repetition/fsrs4anki/wiki/The-Algorithm. Reads
    elapsed time and ratings, not those of same-day reviews; 17 parameters.
    Published row of the trained model, without same-day reviews: log loss 0.3726, RMSE(bins)
    0.0838, AUC 0.6853.
    """

    name = "fsrs4"
    mathematics = Fsrs4Equations
    in_fractional_days = SHORTEST_IN_FRACTIONAL_DAYS
    recipe = Recipe(later_only=True, frozen=(0, 1, 2, 3))
    later_prior = (0.5, 0.25)


# fmt: off
# Published defaults for elapsed times in fractional days. They go with a shortest stability of
# 0.0001: the first of them lies below the bound for whole days.
FRACTIONAL_DAYS_DEFAULTS = (
    0.0012, 0.0826, 0.8382, 26.2146, 4.8622, 1.0311, 0.8295, 0.0379, 2.0884,
    0.4704, 1.2009, 1.7196, 0.1874, 0.1593, 1.5636, 0.2358, 3.3175,
)
# fmt: on


class Fsrs45Equations(Fsrs4Equations):
    """FSRS v4 with a flatter forgetting curve, and failures that never help."""

    decay: ClassVar[float] = 0.5
    # fmt: off
    parameters: ClassVar[ParameterSpace] = ParameterSpace(
        defaults=(
            0.4872, 1.4003, 3.7145, 13.8206, 5.1618, 1.2298, 0.8975, 0.031, 1.6474,
            0.1367, 1.0461, 2.1072, 0.0793, 0.3246, 1.587, 0.2272, 2.8755,
        ),
        lower=(
            *(0.01,) * 4, 0.0, 0.01, 0.01, 0.0, 0.0,
            0.0, 0.01, 0.2, 0.01, 0.01, 0.01, 0.0, 1.0,
        ),
        upper=(
            *(LONGEST_FIRST_STABILITY,) * 4, 10.0, 5.0, 5.0, 0.8, 6.0,
            0.8, 5.0, 6.0, 0.4, 0.9, 4.0, 1.0, 10.0,
        ),
        spread=spread_like_fsrs5(2.5, 1.2475),
    )
    # fmt: on

    def after_failure(
        self, m: Maths, w: Value, stability: Value, difficulty: Value, p: Value
    ) -> Value:
        """Stability after a failure on a later day, never longer than before."""
        return m.minimum(stability_after_failure(m, w, stability, difficulty, p), stability)


class Fsrs45(Fsrs4):
    """FSRS-4.5 (Ye, 2023), fitted to one user.

    Formulas: https://github.com/open-spaced-repetition/fsrs4anki/wiki/The-Algorithm. Reads
    elapsed time and ratings, not those of same-day reviews; 17 parameters.
    Published row of the trained model, without same-day reviews: log loss 0.3625, RMSE(bins)
    0.0764, AUC 0.6891.
    """

    name = "fsrs45"
    mathematics = Fsrs45Equations
    later_prior = (0.5, 1.0)

    def defaults(self, *, whole_days: bool) -> tuple[float, ...]:
        """Return the published parameters, which fractional days have their own of."""
        return Fsrs45Equations.parameters.defaults if whole_days else FRACTIONAL_DAYS_DEFAULTS
