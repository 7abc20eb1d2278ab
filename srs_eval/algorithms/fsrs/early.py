"""FSRS versions 1 to 4.5: exponential forgetting in the first three, a power law from 4 on."""

from __future__ import annotations

from typing import ClassVar

from srs_eval.algorithms.fitted import Fitted
from srs_eval.algorithms.fsrs.family import (
    EASIEST,
    EASY,
    FSRS5_SPREAD,
    GOOD,
    HARDEST,
    ExponentialForgetting,
    FsrsEquations,
    FsrsFitted,
    guessed_space,
)
from srs_eval.engine.equations import Maths, State, Value
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.engine.reference import Recipe


class Fsrs1Equations(ExponentialForgetting, FsrsEquations):
    """Exponential forgetting, and after a failure a stability that counts failures.

    Difficulty has no upper end in this version.
    """

    state_names = ("stability", "difficulty", "lapses")
    parameters = guessed_space(
        defaults=(2.0, 5.0, 3.0, -0.7, -0.2, 1.0, -0.3),
        lower=(0.1, 1.0, 0.01, -1.0, -1.0, 0.01, -1.0),
        upper=(10.0, 10.0, 10.0, -0.01, -0.01, 10.0, -0.01),
    )

    def init(self, m: Maths, w: Value, rating: Value) -> State:
        """Stability, difficulty and failures after the first review, which may be one."""
        stability = w[0] * (0.25 * 2 ** (rating - 1))
        return stability, w[1] - rating + 3, m.where(rating > 1, 0.0, 1.0)

    def step(
        self, m: Maths, w: Value, state: State, elapsed: Value, rating: Value, p: Value
    ) -> State:
        """State after a further review: stability reads the new difficulty, the old count."""
        stability, old_difficulty, lapses = state
        difficulty = m.maximum(old_difficulty + p - 0.25 * 2 ** (rating - 1) + 0.1, 0.0)
        surprise = m.exp((1 - p) * w[5]) - 1
        growth = m.exp(w[2]) * (difficulty + 0.1) ** w[3] * stability ** w[4] * surprise
        failed = w[0] * m.exp(w[6] * lapses)
        updated = self.bounded(m, m.where(rating > 1, stability * (1 + growth), failed))
        return updated, difficulty, lapses + m.where(rating > 1, 0.0, 1.0)


class Fsrs1(Fitted):
    """FSRS v1 (Ye, 2022), fitted to one user.

    Formulas: https://github.com/open-spaced-repetition/fsrs4anki/wiki/The-Algorithm. Reads elapsed
    time and ratings, not those of same-day reviews; 7 parameters. Published row of the trained
    model, without same-day reviews: log loss 0.4913, RMSE(bins) 0.1316, AUC 0.6295.
    """

    name = "fsrs1"
    mathematics = Fsrs1Equations
    in_fractional_days = (0.0001,)


class Fsrs2Equations(ExponentialForgetting, FsrsEquations):
    """Exponential forgetting, and a difficulty that is drawn back to a mean."""

    parameters = guessed_space(
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
        return self.bounded(m, m.where(rating > 1, stability * (1 + growth), failed)), difficulty


class Fsrs2(Fitted):
    """FSRS v2 (Ye, 2022), fitted to one user.

    Formulas: https://github.com/open-spaced-repetition/fsrs4anki/wiki/The-Algorithm. Reads elapsed
    time and ratings, not those of same-day reviews; 14 parameters. Published row of the trained
    model, without same-day reviews: log loss 0.4532, RMSE(bins) 0.1095, AUC 0.6512.
    """

    name = "fsrs2"
    mathematics = Fsrs2Equations
    in_fractional_days = (0.0001,)


class Fsrs3Equations(ExponentialForgetting, FsrsEquations):
    """The last version with exponential forgetting."""

    parameters = guessed_space(
        defaults=(0.9605, 1.7234, 4.8527, -1.1917, -1.2956, 0.0573, 1.7352, -0.1673, 1.065,
                  1.8907, -0.3832, 0.5867, 1.0721),
        lower=(0.1, 0.1, 1.0, -5.0, -5.0, 0.05, 0.0, -0.8, 0.01, 0.5, -2.0, 0.01, 0.01),
        upper=(10.0, 5.0, 10.0, -0.1, -0.1, 0.5, 2.0, -0.15, 1.5, 5.0, -0.01, 0.9, 2.0),
    )  # fmt: skip

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
        failed = w[9] * (difficulty ** w[10] * stability ** w[11]) * m.exp((1 - p) * w[12])
        return self.bounded(m, m.where(rating > 1, stability * (1 + growth), failed)), difficulty


class Fsrs3(Fitted):
    """FSRS v3 (Ye, 2022), fitted to one user.

    Formulas: https://github.com/open-spaced-repetition/fsrs4anki/wiki/The-Algorithm. Reads elapsed
    time and ratings, not those of same-day reviews; 13 parameters. Published row of the trained
    model, without same-day reviews: log loss 0.4364, RMSE(bins) 0.1097, AUC 0.6605.
    """

    name = "fsrs3"
    mathematics = Fsrs3Equations
    in_fractional_days = (0.0001,)


class Fsrs4Equations(FsrsEquations):
    """Power-law forgetting, and a first stability for each rating."""

    decay = 1.0
    failure_helps: ClassVar[bool] = True  # Whether stability may be longer after a failure
    # No spread is published. First stabilities, reversion of difficulty and both updates of
    # stability play the same part on the same scale as in FSRS-5, whose spread they take; `w[4]` to
    # `w[6]` move difficulty along a line, not a curve: a quarter of the way between their bounds.
    parameters = ParameterSpace(
        defaults=(0.4, 0.9, 2.3, 10.9, 4.93, 0.94, 0.86, 0.01, 1.49,
                  0.14, 0.94, 2.18, 0.05, 0.34, 1.26, 0.29, 2.61),
        lower=(*(0.01,) * 4, 1.0, 0.1, 0.1, 0.0, 0.0, 0.1, 0.01, 0.5, 0.01, 0.01, 0.01, 0.0, 1.0),
        upper=(*(100.0,) * 4, 10.0, 5.0, 5.0, 0.5, 3.0, 0.8, 2.5, 5.0, 0.2, 0.9, 2.0, 1.0, 4.0),
        spread=(*FSRS5_SPREAD[:4], 2.25, 1.225, 1.225, *FSRS5_SPREAD[7:17]),
    )  # fmt: skip

    def init(self, m: Maths, w: Value, rating: Value) -> State:
        difficulty = w[4] - w[5] * (rating - GOOD)
        return self.first_stability(m, w, rating), m.clip(difficulty, EASIEST, HARDEST)

    def step(
        self, m: Maths, w: Value, state: State, elapsed: Value, rating: Value, p: Value
    ) -> State:
        """Stability and difficulty after a further review; both read the old difficulty."""
        stability, difficulty = state
        passed, failed = self.after_pass(m, w, state, rating, p), self.after_failure(m, w, state, p)
        if not self.failure_helps:
            failed = m.minimum(failed, stability)
        updated = self.bounded(m, m.where(rating > 1, passed, failed))
        moved = difficulty - w[6] * (rating - GOOD)
        return updated, m.clip(w[7] * w[4] + (1 - w[7]) * moved, EASIEST, HARDEST)


class Fsrs4(FsrsFitted):
    """FSRS v4 (Ye, 2023), fitted to one user.

    Formulas: https://github.com/open-spaced-repetition/fsrs4anki/wiki/The-Algorithm. Reads elapsed
    time and ratings, not those of same-day reviews; 17 parameters. Published row of the trained
    model, without same-day reviews: log loss 0.3726, RMSE(bins) 0.0838, AUC 0.6853.
    """

    name = "fsrs4"
    mathematics = Fsrs4Equations
    recipe = Recipe(later_only=True, frozen=(0, 1, 2, 3))
    later_prior = (0.5, 0.25)


class Fsrs45Equations(Fsrs4Equations):
    """FSRS v4 with a flatter forgetting curve, and failures that never help."""

    decay = 0.5
    failure_helps = False
    parameters = ParameterSpace(
        defaults=(0.4872, 1.4003, 3.7145, 13.8206, 5.1618, 1.2298, 0.8975, 0.031, 1.6474,
                  0.1367, 1.0461, 2.1072, 0.0793, 0.3246, 1.587, 0.2272, 2.8755),
        lower=(*(0.01,) * 4, 0.0, 0.01, 0.01, 0.0, 0.0, 0.0, 0.01, 0.2, 0.01, 0.01, 0.01, 0.0, 1.0),
        upper=(*(100.0,) * 4, 10.0, 5.0, 5.0, 0.8, 6.0, 0.8, 5.0, 6.0, 0.4, 0.9, 4.0, 1.0, 10.0),
        spread=(*FSRS5_SPREAD[:4], 2.5, 1.2475, 1.2475, *FSRS5_SPREAD[7:17]),
    )  # fmt: skip


# Published defaults for elapsed times in fractional days. They go with a shortest stability of
# 0.0001: the first of them lies below the bound for whole days.
_DEFAULTS_IN_FRACTIONAL_DAYS = (
    0.0012, 0.0826, 0.8382, 26.2146, 4.8622, 1.0311, 0.8295, 0.0379, 2.0884,
    0.4704, 1.2009, 1.7196, 0.1874, 0.1593, 1.5636, 0.2358, 3.3175,
)  # fmt: skip


class Fsrs45(Fsrs4):
    """FSRS-4.5 (Ye, 2023), fitted to one user.

    Formulas: https://github.com/open-spaced-repetition/fsrs4anki/wiki/The-Algorithm. Reads elapsed
    time and ratings, not those of same-day reviews; 17 parameters. Published row of the trained
    model, without same-day reviews: log loss 0.3625, RMSE(bins) 0.0764, AUC 0.6891.
    """

    name = "fsrs45"
    mathematics = Fsrs45Equations
    later_prior = (0.5, 1.0)

    def defaults(self, *, whole_days: bool) -> tuple[float, ...]:
        """Return the published parameters, which fractional days have their own of."""
        return (
            super().defaults(whole_days=whole_days) if whole_days else _DEFAULTS_IN_FRACTIONAL_DAYS
        )
