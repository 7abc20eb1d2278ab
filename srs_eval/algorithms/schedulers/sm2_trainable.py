"""SM-2 with its constants fitted to one user."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import ClassVar

from srs_eval.algorithms.fitted import Fitted
from srs_eval.algorithms.fsrs.family import ExponentialForgetting
from srs_eval.algorithms.fsrs.fitting import SHORTEST_IN_FRACTIONAL_DAYS
from srs_eval.engine.equations import Equations, Maths, State, Value
from srs_eval.engine.parameters import ParameterSpace

_SHORTEST_INTERVAL, _LONGEST_INTERVAL = 0.01, 36500.0
_LONGEST_FIXED_INTERVAL = 100.0
_LOWEST_EASE, _HIGHEST_EASE = 1.3, 10.0


@dataclass(frozen=True, slots=True)
class Sm2TrainableEquations(ExponentialForgetting):
    """SM-2 whose interval is not rounded, and whose constants are parameters.

    `w[0]` and `w[1]` are the first two intervals, `w[2]` is the first ease; ratings move the
    ease along a parabola of width `w[3]`, summit `w[4]` (as an SM-2 grade) and height `w[5]`.
    """

    state_names: ClassVar[tuple[str, ...]] = ("interval", "ease", "repetitions")
    parameters: ClassVar[ParameterSpace] = ParameterSpace(
        defaults=(1.0, 6.0, 2.5, 0.02, 7.0, 0.18),
        lower=(_SHORTEST_INTERVAL, _SHORTEST_INTERVAL, _LOWEST_EASE, 0.0, 5.0, -math.inf),
        upper=(*(_LONGEST_FIXED_INTERVAL,) * 2, _HIGHEST_EASE, *(math.inf,) * 3),
        # None is published. A quarter of the width of the bounds where there are two; the
        # others are guesses, without which ratings that are hardly used could go anywhere.
        spread=(25.0, 25.0, 2.2, 0.1, 1.0, 0.2),
    )

    shortest_interval: float = _SHORTEST_INTERVAL  # In days; 0.01 with whole days

    def init(self, m: Maths, w: Value, rating: Value) -> State:
        """State after the card's first review: the first interval, whatever the rating."""
        interval = m.clip(w[0], self.shortest_interval, _LONGEST_INTERVAL)
        return interval, self._ease(m, w, w[2], rating), 1.0

    def step(
        self, m: Maths, w: Value, state: State, elapsed: Value, rating: Value, p: Value
    ) -> State:
        """State after a further review; a failure begins again with the first interval."""
        interval, ease, old_repetitions = state
        repetitions = m.where(rating > 1, old_repetitions + 1, 1.0)
        grown = m.where(repetitions == 2, w[1], interval * ease)
        return (
            m.clip(
                m.where(repetitions == 1, w[0], grown), self.shortest_interval, _LONGEST_INTERVAL
            ),
            self._ease(m, w, ease, rating),
            repetitions,
        )

    def _ease(self, m: Maths, w: Value, ease: Value, rating: Value) -> Value:
        # SM-2's grades are those of Anki plus one.
        moved = ease - w[3] * (rating + 1 - w[4]) ** 2 + w[5]
        return m.clip(moved, _LOWEST_EASE, _HIGHEST_EASE)


class Sm2Trainable(Fitted):
    """SM-2 with six of its constants fitted to one user (SM-2-trainable).

    After Woźniak (1990), *Optimization of learning*, chapter on algorithm SM-2, in the form
    that the public benchmark gave it. Reads ratings, not those of same-day reviews, and the
    elapsed time of the predicted review alone; 6 parameters. Published row of the
    trained model, without same-day reviews: log loss 0.581, RMSE(bins) 0.1699, AUC 0.5970.

    Options: see `Fitted`.
    """

    name = "sm2_trainable"
    mathematics = Sm2TrainableEquations
    in_fractional_days = SHORTEST_IN_FRACTIONAL_DAYS
    # From the published intervals alone a fit can get stuck far above the best one, where
    # days have fractions: of 12 simulated users, 3.
    starts = 3

    def space(self, equations: Equations) -> ParameterSpace:
        """Return the bounds, with both fixed intervals as short as any interval may be."""
        space = equations.parameters
        shortest = getattr(equations, "shortest_interval", space.lower[0])
        return dataclasses.replace(space, lower=(shortest, shortest, *space.lower[2:]))
