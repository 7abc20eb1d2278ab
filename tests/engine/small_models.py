"""Models of a line or two."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from srs_eval.engine.compiled import CompiledModel
from srs_eval.engine.parameters import ParameterSpace


@dataclass(frozen=True)
class SmallEquations:
    """Equations that are handed over as functions; by default a state that stays 1."""

    curve_of: Callable[..., Any] = lambda m, w, state, elapsed: 0.9
    step_of: Callable[..., Any] = lambda m, w, state, elapsed, rating, p: state
    init_of: Callable[..., Any] = lambda m, w, rating: (1.0,)
    space: ParameterSpace = field(default=ParameterSpace((0.5,), (0.0,), (1.0,)))
    state_names: tuple[str, ...] = ("state",)

    @property
    def parameters(self):
        return self.space

    def init(self, m, w, rating):
        return self.init_of(m, w, rating)

    def curve(self, m, w, state, elapsed):
        return self.curve_of(m, w, state, elapsed)

    def step(self, m, w, state, elapsed, rating, p):
        return self.step_of(m, w, state, elapsed, rating, p)


def small_model(**given):
    """Make the functions of a small model."""
    return CompiledModel(SmallEquations(**given))


def space_of(defaults, lower=-10.0, upper=10.0, ordered=()):
    """Make a space with the same bounds for all."""
    n = len(defaults)
    return ParameterSpace(defaults, (lower,) * n, (upper,) * n, ordered=ordered)
