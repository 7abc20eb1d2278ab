"""What a metric is: a function, and what is declared of it.

A metric is a function of a `Tally` or of `Predictions`, as the annotation of its first parameter
says, and returns a number, NaN where it is not defined. One of a tally is computed in the same way
of one user, of all users together, and of resamples for its interval; one of predictions is of
single users alone. Its docstring says which way is better, the range, the formula, what happens at
the edges, and the source.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeVar, get_args

from srs_eval.errors import ConfigError
from srs_eval.metrics.tally import Tally

Better = Literal["lower", "higher", "zero", "neither"]
Function = Callable[..., float]
F = TypeVar("F", bound=Function)
UNBOUNDED = (-math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class Metric:
    """A function of reviews by the name it has in results."""

    name: str  # Letters, digits and underscores only, so that every tracker takes it
    function: Function
    better: Better = "neither"
    bounds: tuple[float, float] = UNBOUNDED  # Lowest and highest possible number
    is_mean: bool = False  # Whether it is the mean of a number of each review
    # Whether clusters are resampled for an interval. Floors do not depend on outcomes, and errors
    # along a smooth curve are compared with their floors
    has_interval: bool = True
    of_tally: bool = True  # Whether it is a function of a `Tally`, or else of `Predictions`


def metric(
    better: Better = "neither",
    bounds: tuple[float, float] = UNBOUNDED,
    *,
    is_mean: bool = False,
    has_interval: bool = True,
) -> Callable[[F], F]:
    """Declare what is known of a metric: see `Metric`. The function stays as it is.

    >>> @metric("higher", bounds=(0, 1))
    ... def share_of_recalls(tally: Tally) -> float:
    ...     return tally.n_recalled / tally.n
    """
    if better not in get_args(Better):
        raise ConfigError(f"better is {better!r}, expected one of {', '.join(get_args(Better))}")

    def declare(function: F) -> F:
        vars(function)["declared"] = Metric(
            function.__name__, function, better, bounds, is_mean, has_interval
        )
        return function

    return declare


def as_metric(function: Any, name: str = "") -> Metric:
    """Return a function with what is declared of it; its name is its own by default.

    Raise `ConfigError` if it is no function of one thing, or if trackers do not take the name.
    """
    if isinstance(function, Metric):
        return function
    bare = function
    if isinstance(function, partial):  # Hydra's own checks its target again in each call
        bare = function.func
        function = partial(bare, *function.args, **function.keywords)
    name = name or getattr(bare, "__name__", repr(bare))
    if not callable(bare):
        raise ConfigError(f"metric {name}: {function!r} is not a function")
    if not re.fullmatch(r"[A-Za-z0-9_]+", name):
        raise ConfigError(
            f"metric name {name!r} has characters other than letters, digits and underscores"
        )
    signature = inspect.signature(bare)
    try:
        signature.bind(None, **getattr(function, "keywords", {}))
    except TypeError as error:
        raise ConfigError(f"metric {name}: {error}; expected a function of a tally") from None
    first = next(iter(signature.parameters.values())).annotation
    declared = getattr(bare, "declared", Metric(name, function))
    return replace(declared, name=name, function=function, of_tally=first in (Tally, "Tally"))
