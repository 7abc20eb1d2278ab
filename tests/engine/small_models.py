"""Models of a line or two."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from srs_eval.engine.compiled import CompiledModel
from srs_eval.engine.parameters import ParameterSpace

ONE = ParameterSpace((0.5,), (0.0,), (1.0,))


@dataclass(frozen=True)
class SmallEquations:
    """Equations that are handed over as functions; by default a state that stays 1."""

    curve: Callable[..., Any] = lambda m, w, state, elapsed: 0.9
    step: Callable[..., Any] = lambda m, w, state, elapsed, rating, p: state
    init: Callable[..., Any] = lambda m, w, rating: (1.0,)
    parameters: ParameterSpace = ONE
    state_names: tuple[str, ...] = ("state",)


def small_model(**given):
    """Make the functions of a small model."""
    return CompiledModel(SmallEquations(**given))


def space_of(defaults, lower=-10.0, upper=10.0, ordered=()):
    """Make a space with the same bounds for all."""
    n = len(defaults)
    return ParameterSpace(defaults, (lower,) * n, (upper,) * n, ordered=ordered)
