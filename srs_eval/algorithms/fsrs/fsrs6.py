"""FSRS-6, the equations of most scheduling today, and FSRS-5, which it grew out of."""

from __future__ import annotations

from dataclasses import dataclass

from srs_eval.algorithms.fsrs.family import (
    EASIEST,
    EASY,
    FSRS5_SPREAD,
    GOOD,
    HARD,
    HARDEST,
    FsrsEquations,
    FsrsFitted,
)
from srs_eval.engine.equations import Maths, State, Value
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.engine.reference import Recipe


@dataclass(frozen=True)
class Fsrs5Equations(FsrsEquations):
    """A difficulty that slows down towards its upper end, and an update for same-day reviews.

    The state is the stability and the difficulty; `curve`, which predicts from it, is a power law.
    """

    parameters = ParameterSpace(
        defaults=(0.40255, 1.18385, 3.173, 15.69105, 7.1949, 0.5345, 1.4604, 0.0046, 1.54575,
                  0.1192, 1.01925, 1.9395, 0.11, 0.29605, 2.2698, 0.2315, 2.9898, 0.51655, 0.6621),
        lower=(*(0.01,) * 4, 1.0, 0.001, 0.001, 0.001, 0.0, 0.0,
               0.001, 0.001, 0.001, 0.001, 0.0, 0.0, 1.0, 0.0, 0.0),
        upper=(*(100.0,) * 4, 10.0, 4.0, 4.0, 0.75, 4.5, 0.8,
               3.5, 5.0, 0.25, 0.9, 4.0, 1.0, 6.0, 2.0, 2.0),
        spread=FSRS5_SPREAD,
    )  # fmt: skip

    def init(self, m: Maths, w: Value, rating: Value) -> State:
        """Stability and difficulty after the first review."""
        difficulty = self.first_difficulty(m, w, rating)
        return self.first_stability(m, w, rating), m.clip(difficulty, EASIEST, HARDEST)

    def step(
        self, m: Maths, w: Value, state: State, elapsed: Value, rating: Value, p: Value
    ) -> State:
        """Stability and difficulty after a review, of which `p` was the predicted recall.

        Both read the old difficulty, which uses `w[4]` to `w[7]`. A failure on a later day leaves
        no more than a same-day Again would: at most ``stability / exp(w[17] * w[18])``.
        """
        stability, difficulty = state
        passed, failed = self.after_pass(m, w, state, rating, p), self.after_failure(m, w, state, p)
        failed = m.minimum(failed, stability / m.exp(w[17] * w[18]))
        later_day = m.where(rating > 1, passed, failed)
        same_day = stability * self.same_day_growth(m, w, stability, rating)
        updated = self.bounded(m, m.where(elapsed < 1, same_day, later_day))
        moved = difficulty - w[6] * (rating - GOOD) * (HARDEST - difficulty) / 9
        reverted = w[7] * self.first_difficulty(m, w, EASY) + (1 - w[7]) * moved
        return updated, m.clip(reverted, EASIEST, HARDEST)

    def same_day_growth(self, m: Maths, w: Value, stability: Value, rating: Value) -> Value:
        """Factor of the stability after a review on the day of the one before."""
        return m.exp(w[17] * (rating - GOOD + w[18]))


class Fsrs5(FsrsFitted):
    """FSRS-5 (Ye, 2024), fitted to one user.

    Formulas: https://github.com/open-spaced-repetition/fsrs4anki/wiki/The-Algorithm. Reads elapsed
    time and ratings, those of same-day reviews included; 19 parameters. Published row of the
    trained model, without same-day reviews: log loss 0.3561, RMSE(bins) 0.0742, AUC 0.7010.
    """

    name = "fsrs5"
    mathematics = Fsrs5Equations
    same_day = True
    recipe = Recipe(penalty=1.0)  # Of ``fit=reference``; other fits do without


@dataclass(frozen=True)
class Fsrs6Equations(Fsrs5Equations):
    """FSRS-5 with a trainable power law, and a same-day update that fades as stability grows."""

    decay = 0.1542  # The published `w[20]`, with which first stabilities are found
    parameters = ParameterSpace(
        defaults=(0.212, 1.2931, 2.3065, 8.2956, 6.4133, 0.8334, 3.0194, 0.001, 1.8722, 0.1666,
                  0.796, 1.4835, 0.0614, 0.2629, 1.6483, 0.6014, 1.8729, 0.5425, 0.0912, 0.0658,
                  0.1542),
        lower=(*(0.001,) * 4, 1.0, 0.001, 0.001, 0.001, 0.0, 0.0, 0.001,
               0.001, 0.001, 0.001, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.1),
        upper=(*(100.0,) * 4, 10.0, 4.0, 4.0, 0.75, 4.5, 0.8, 3.5,
               5.0, 0.25, 0.9, 4.0, 1.0, 6.0, 2.0, 2.0, 0.8, 0.8),
        spread=(6.43, 9.66, 17.58, 27.85, 0.57, 0.28, 0.60, 0.12, 0.39, 0.18, 0.33,
                0.30, 0.09, 0.16, 0.57, 0.25, 1.03, 0.31, 0.32, 0.14, 0.27),
    )  # fmt: skip

    shortest_stability: float = 0.001  # In days, whole or not

    def exponent(self, w: Value) -> Value:
        return w[20]

    def same_day_growth(self, m: Maths, w: Value, stability: Value, rating: Value) -> Value:
        """Factor of the stability; only Again lowers it."""
        growth = m.exp(w[17] * (rating - GOOD + w[18])) * stability ** (-w[19])
        return m.where(rating >= HARD, m.maximum(growth, 1.0), growth)


class Fsrs6(FsrsFitted):
    """FSRS-6 (Ye, 2025), fitted to one user.

    Formulas: https://github.com/open-spaced-repetition/fsrs4anki/wiki/The-Algorithm. Reads elapsed
    time and ratings, those of same-day reviews included; 21 parameters. Published row of the
    trained model, without same-day reviews: log loss 0.3460, RMSE(bins) 0.0653, AUC 0.7034 (default
    parameters 0.3661, 0.0927, 0.6956).
    """

    name = "fsrs6"
    mathematics = Fsrs6Equations
    in_fractional_days = ()
    same_day = True
    recipe = Recipe(penalty=1.0)  # Of ``fit=reference``; other fits do without
    later_prior = (1.0, 0.25)  # With whole days, and with fractional ones
