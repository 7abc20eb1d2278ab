"""SuperMemo's algorithm SM-2, read as a memory model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from srs_eval.engine.equations import Maths, State, Value
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.engine.recurrent import RecurrentModel
from srs_eval.nouns import Algorithm, IntArray, Reviews

_LONGEST_INTERVAL = 36500.0


@dataclass(frozen=True, slots=True)
class Sm2Equations:
    """SM-2's interval as the time after which recall has fallen to 90 %.

    Ratings 1 to 4 are its grades 2 to 5. Elapsed time never enters the state.
    """

    state_names: ClassVar[tuple[str, ...]] = ("interval", "ease", "repetitions")
    parameters: ClassVar[ParameterSpace] = ParameterSpace((), (), ())

    def init(self, m: Maths, w: Value, rating: Value) -> State:
        return self._graded(m, (0.0, 2.5, 0.0), rating)

    def curve(self, m: Maths, w: Value, state: State, elapsed: Value) -> Value:
        """Exponential forgetting, at 90 % when the interval is over."""
        interval, _, _ = state
        return 0.9 ** (elapsed / interval)

    def step(
        self,
        m: Maths,
        w: Value,
        state: State,
        elapsed: Value,
        rating: Value,
        p: Value,
    ) -> State:
        return self._graded(m, state, rating)

    def _graded(self, m: Maths, state: State, rating: Value) -> State:
        interval, ease, repetitions = state
        passed = rating > 1
        grown = m.where(repetitions == 0, 1.0, m.where(repetitions == 1, 6.0, interval * ease))
        interval = m.rint(m.where(passed, grown, 1.0) + 0.01)
        missing = 4.0 - rating
        return (
            m.clip(interval, 1.0, _LONGEST_INTERVAL),
            m.maximum(ease + 0.1 - missing * (0.08 + missing * 0.02), 1.3),
            m.where(passed, repetitions + 1.0, 0.0),
        )


@dataclass(frozen=True, slots=True)
class Sm2(Algorithm):
    """SM-2 as published, nothing learned.

    Woźniak (1990), *Optimization of learning*, chapter on algorithm SM-2,
    https://super-memory.com/english/ol/sm2.htm. Reads ratings and the elapsed time of the
    predicted review; no parameters. Published row, without same-day reviews: log
    loss 0.722, RMSE(bins) 0.2031, AUC 0.6026.
    """

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> RecurrentModel:
        return RecurrentModel(Sm2Equations(), ())
