"""Half-life regression."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from srs_eval.algorithms.fitted import Fitted
from srs_eval.engine.equations import Maths, State, Value
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.engine.reference import Recipe


@dataclass(frozen=True, slots=True)
class HlrEquations:
    """Exponential forgetting whose half-life grows with passes and shrinks with failures."""

    state_names: ClassVar[tuple[str, ...]] = ("passes", "failures")
    parameters: ClassVar[ParameterSpace] = ParameterSpace(
        defaults=(2.5819, -0.8674, 2.7245),
        lower=(-math.inf,) * 3,
        upper=(math.inf,) * 3,
        # None is published. Of the size of the defaults: without any, few reviews that are all
        # recalled would send half-lives to infinity.
        spread=(2.5,) * 3,
    )

    def init(self, m: Maths, w: Value, rating: Value) -> State:
        return m.where(rating > 1, 1.0, 0.0), m.where(rating > 1, 0.0, 1.0)

    def curve(self, m: Maths, w: Value, state: State, elapsed: Value) -> Value:
        """Exponential forgetting, at 50 % when `elapsed` equals the half-life."""
        passes, failures = state
        half_life = 2 ** (w[0] * passes**0.5 + w[1] * failures**0.5 + w[2])
        return 0.5 ** (elapsed / half_life)

    def step(
        self, m: Maths, w: Value, state: State, elapsed: Value, rating: Value, p: Value
    ) -> State:
        passes, failures = state
        return passes + m.where(rating > 1, 1.0, 0.0), failures + m.where(rating > 1, 0.0, 1.0)


class Hlr(Fitted):
    """Half-life regression in the form of the public benchmark (HLR).

    After Settles & Meeder (2016), *A Trainable Spaced Repetition Model for Language Learning*,
    ACL, https://doi.org/10.18653/v1/P16-1174. The benchmark keeps its half-life of square roots
    of counts, drops the indicators of single words, and trains by log loss alone, unweighted
    and unregularised. Reads elapsed time and pass or fail; 3 parameters. Published
    row, without same-day reviews: log loss 0.4694, RMSE(bins) 0.1275, AUC 0.6369.

    Options: see `Fitted`.
    """

    name = "hlr"
    mathematics = HlrEquations
    own_recency = "none"
    # Its inputs are counts, which all have the same length.
    recipe = Recipe(sort=False, longest_history=None, decimals=None)
