"""Kinds of numbers that options take: where options are built, their annotations are checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

from annotated_types import Ge, Gt, Lt
from pydantic import Strict

from srs_eval.errors import ConfigError

Count = Annotated[int, Strict(), Ge(1)]
Finite = Annotated[float, Strict(), Gt(-math.inf), Lt(math.inf)]
Positive = Annotated[float, Strict(), Gt(0), Lt(math.inf)]
NotNegative = Annotated[float, Strict(), Ge(0), Lt(math.inf)]
Switch = Annotated[bool, Strict()]


def require_choice(owner: str, option: str, value: object, choices: Sequence[str]) -> None:
    """Refuse an option that is not one of its choices."""
    if value not in choices:
        raise ConfigError(f"{owner}: {option}={value} is not one of: {', '.join(choices)}")


def require_above_zero(owner: str, option: str, value: object, *, or_zero: bool = False) -> None:
    """Refuse an option that is not a finite number above 0 (or, if allowed, 0)."""
    usable = (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and (value > 0 or (or_zero and value == 0))
    )
    if not usable:
        least = "0 or more" if or_zero else "above 0"
        raise ConfigError(f"{owner}: {option}={value} is not a number {least}")


def require_bool(owner: str, option: str, value: object) -> None:
    """Refuse an option that is not true or false."""
    if not isinstance(value, bool):
        raise ConfigError(f"{owner}: {option}={value} is not one of: true, false")
