"""FSRS versions 1 to 3, with exponential forgetting."""

from __future__ import annotations

from typing import ClassVar

from srs_eval.algorithms.fitted import Fitted
from srs_eval.algorithms.fsrs.family import (
    EASIEST,
    EASY,
    GOOD,
    HARDEST,
    SHORTEST_IN_FRACTIONAL_DAYS,
    ExponentialForgetting,
    FsrsEquations,
    guessed_space,
)
from srs_eval.engine.equations import Maths, State, Value
from srs_eval.engine.parameters import ParameterSpace


class Fsrs1Equations(ExponentialForgetting, FsrsEquations):
    """Exponential forgetting, and after a failure a stability that counts failures.

    Difficulty has no upper end in this version.
    """

    state_names: ClassVar[tuple[str, ...]] = ("stability", "difficulty", "lapses")
    parameters: ClassVar[ParameterSpace] = guessed_space(
        defaults=(2.0, 5.0, 3.0, -0.7, -0.2, 1.0, -0.3),
        lower=(0.1, 1.0, 0.01, -1.0, -1.0, 0.01, -1.0),
        upper=(10.0, 10.0, 10.0, -0.01, -0.01, 10.0, -0.01),
    )

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
            self.bounded(m, m.where(rating > 1, stability * (1 + growth), failed)),
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
    """

    name = "fsrs1"
    mathematics = Fsrs1Equations
    in_fractional_days = SHORTEST_IN_FRACTIONAL_DAYS


class Fsrs2Equations(ExponentialForgetting, FsrsEquations):
    """Exponential forgetting, and a difficulty that is drawn back to a mean."""

    parameters: ClassVar[ParameterSpace] = guessed_space(
        defaults=(1.0, 1.0, 1.0, -1.0, -1.0, 0.2, 3.0, -0.8, -0.2, 1.3, 2.6, -0.2, 0.6, 1.5),
        lower=(0.1, 0.01, 1.0, -10.0, -10.0, 0.0, 0.0, -2.0, -2.0, 0.01, 0.0, -2.0, 0.01, 0.01),
        upper=(10.0, 10.0, 10.0, -0.01, -0.01, 1.0, 5.0, -0.01, -0.01, 2.0, 5.0, -0.01, 1.0, 2.0),
    )

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
            self.bounded(m, m.where(rating > 1, stability * (1 + growth), failed)),
            difficulty,
        )


class Fsrs2(Fitted):
    """FSRS v2 (Ye, 2022), fitted to one user.

    Formulas: https://github.com/open-spaced-repetition/fsrs4anki/wiki/The-Algorithm. Reads
    elapsed time and ratings, not those of same-day reviews; 14 parameters.
    Published row of the trained model, without same-day reviews: log loss 0.4532, RMSE(bins)
    0.1095, AUC 0.6512.
    """

    name = "fsrs2"
    mathematics = Fsrs2Equations
    in_fractional_days = SHORTEST_IN_FRACTIONAL_DAYS


class Fsrs3Equations(ExponentialForgetting, FsrsEquations):
    """The last version with exponential forgetting."""

    # fmt: off
    parameters: ClassVar[ParameterSpace] = guessed_space(
        defaults=(
            0.9605, 1.7234, 4.8527, -1.1917, -1.2956, 0.0573, 1.7352, -0.1673, 1.065, 1.8907,
            -0.3832, 0.5867, 1.0721,
        ),
        lower=(0.1, 0.1, 1.0, -5.0, -5.0, 0.05, 0.0, -0.8, 0.01, 0.5, -2.0, 0.01, 0.01),
        upper=(10.0, 5.0, 10.0, -0.1, -0.1, 0.5, 2.0, -0.15, 1.5, 5.0, -0.01, 0.9, 2.0),
    )
    # fmt: on

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
        memory = difficulty ** w[10] * stability ** w[11]
        failed = w[9] * memory * m.exp((1 - p) * w[12])
        return (
            self.bounded(m, m.where(rating > 1, stability * (1 + growth), failed)),
            difficulty,
        )


class Fsrs3(Fitted):
    """FSRS v3 (Ye, 2022), fitted to one user.

    Formulas: https://github.com/open-spaced-repetition/fsrs4anki/wiki/The-Algorithm. Reads
    elapsed time and ratings, not those of same-day reviews; 13 parameters.
    Published row of the trained model, without same-day reviews: log loss 0.4364, RMSE(bins)
    0.1097, AUC 0.6605.
    """

    name = "fsrs3"
    mathematics = Fsrs3Equations
    in_fractional_days = SHORTEST_IN_FRACTIONAL_DAYS
