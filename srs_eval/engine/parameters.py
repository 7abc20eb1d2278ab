"""The numbers a memory model is tuned by: defaults, bounds, and the check of given ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from srs_eval.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ParameterSpace:
    """Default, bounds and spread of every parameter of a model."""

    # Of equal length; bounds are inclusive and may be infinite
    defaults: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    # How far users lie from the defaults: fits are drawn towards them by ``((w - default) /
    # spread)**2``, which makes the spread sqrt(2) standard deviations of the prior. Infinite where
    # nothing is known, which is also what leaving it out means
    spread: tuple[float, ...] = ()
    # Pairs (i, j) of parameters that must satisfy ``w[i] <= w[j]``
    ordered: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        """Fill in the spread, and refuse columns of unequal length."""
        if not self.spread:
            object.__setattr__(self, "spread", (math.inf,) * len(self.defaults))
        columns = zip(self.defaults, self.lower, self.upper, self.spread, strict=True)
        for number, (default, low, high, spread) in enumerate(columns):
            if not low <= default <= high:
                raise ValueError(f"parameter {number}: {default} is outside {low} to {high}")
            if not spread > 0:
                raise ValueError(f"parameter {number}: a spread of {spread} is not above 0")

    def __len__(self) -> int:
        """Count the parameters."""
        return len(self.defaults)

    def checked(self, given: Sequence[float] | None, owner: str) -> tuple[float, ...]:
        """Return `given` as floats, or the defaults where it is None; `owner` is for the error.

        >>> space = ParameterSpace(defaults=(1.0, 2.0), lower=(0.0, 0.0), upper=(9.0, 9.0))
        >>> space.checked([3, 10], "example")
        Traceback (most recent call last):
        ...
        srs_eval.errors.ConfigError: example: parameters cannot be used:
          - parameter 1 is 10.0, outside 0.0 to 9.0
        """
        if given is None:
            return self.defaults
        problems = list(self._problems(given))
        if problems:
            listed = "\n".join(f"  - {problem}" for problem in problems)
            raise ConfigError(f"{owner}: parameters cannot be used:\n{listed}")
        return tuple(float(value) for value in given)

    def _problems(self, given: object) -> Iterator[str]:
        if isinstance(given, str) or not isinstance(given, Sequence):
            yield f"{given!r} is not a list of {len(self)} numbers"
            return
        if len(given) != len(self):
            yield f"there are {len(given)} of them, {len(self)} are needed"
        bounds = zip(given, self.lower, self.upper, strict=False)
        for number, (value, low, high) in enumerate(bounds):
            if isinstance(value, bool) or not isinstance(value, int | float):
                yield f"parameter {number} is {value!r}, not a number"
            elif not math.isfinite(value):
                yield f"parameter {number} is {value}, not a finite number"
            elif not low <= value <= high:
                yield f"parameter {number} is {float(value)}, outside {low} to {high}"
        numbers = all(isinstance(value, int | float) for value in given)
        if numbers and len(given) == len(self):
            for low, high in self.ordered:
                if not given[low] <= given[high]:
                    yield (
                        f"parameter {low} is {given[low]}, larger than parameter {high}, "
                        f"{given[high]}"
                    )
