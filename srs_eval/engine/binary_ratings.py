"""Binary ratings: any model, with Hard and Easy taken for Good."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from srs_eval.engine.equations import Equations, Maths, State, Value
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.nouns import Reviews

_AGAIN, _GOOD = 1.0, 3.0


@dataclass(frozen=True, slots=True)
class BinaryRatings:
    """Equations that read only whether an answer was a pass."""

    model: Equations  # What they are made of; it sees ratings 1 (Again) and 3 (Good)

    @property
    def state_names(self) -> tuple[str, ...]:
        """Those of the model."""
        return self.model.state_names

    @property
    def parameters(self) -> ParameterSpace:
        """Those of the model."""
        return self.model.parameters

    def init(self, m: Maths, w: Value, rating: Value) -> State:
        return self.model.init(m, w, _binary(m, rating))

    def curve(self, m: Maths, w: Value, state: State, elapsed: Value) -> Value:
        """Forgetting curve of the model."""
        return self.model.curve(m, w, state, elapsed)

    def step(
        self, m: Maths, w: Value, state: State, elapsed: Value, rating: Value, p: Value
    ) -> State:
        return self.model.step(m, w, state, elapsed, _binary(m, rating), p)


def with_binary_ratings(reviews: Reviews) -> Reviews:
    """Replace Hard and Easy by Good in a log, for methods that learn without equations."""
    return replace(reviews, rating=np.where(reviews.recalled, int(_GOOD), int(_AGAIN)))


def _binary(m: Maths, rating: Value) -> Value:
    return m.where(rating > _AGAIN, _GOOD, _AGAIN)
