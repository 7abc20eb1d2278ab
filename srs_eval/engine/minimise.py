"""Fits within bounds by damped Gauss-Newton steps (Fisher scoring).

Every step minimises a quadratic model of the objective exactly, subject to the
bounds and the order of the parameters. Clipping a free step instead would stall at a bound.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import daqp
import numpy as np

from srs_eval.engine.objective import Curved, feasible
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.errors import FitError
from srs_eval.nouns import FloatArray

_FIRST_DAMPING, _LEAST_DAMPING = 1e-2, 1e-9
_MOST_DAMPING = 1e9
_NEGLIGIBLE = 0.01
_LITTLE_DAMPING = 0.1
_REMEMBERED = 4
_SOLVED = 1
_UNBOUNDED = 1e30


@dataclass(frozen=True, slots=True)
class Minimum:
    """Where a fit ended."""

    parameters: FloatArray  # [parameters]
    value: float  # Of the objective
    information: FloatArray  # [parameters, parameters]: Curvature of the objective there
    steps: int  # How often the objective was evaluated
    converged: bool  # Whether the last step gained less than the tolerance


def newton(
    objective: Curved,
    start: FloatArray,
    space: ParameterSpace,
    *,
    tolerance: float = 1e-5,
    most_steps: int = 60,
) -> Minimum:
    """Minimise an objective.

    The fit ends when a step lowers the objective by less than `tolerance` as a share of it, and, if
    the step was held short, so does a fresh one from there.
    """
    search = _Search(objective, start, space)
    while search.evaluated < most_steps:
        if search.advance(tolerance) and search.confirms(tolerance):
            return search.ended(converged=True)
    return search.ended(converged=False)


def lowest(minimise: Callable[[FloatArray], Minimum], starts: Sequence[FloatArray]) -> Minimum:
    """Minimise from every start; the error of the first counts if all of them fail."""
    ends: list[Minimum] = []
    errors: list[FitError] = []
    for start in starts:
        try:
            ends.append(minimise(start))
        except FitError as error:
            errors.append(error)
    if not ends:
        raise errors[0]
    return min(ends, key=lambda end: end.value)


class _Search:
    """Where a fit is, and how far it trusts its quadratic model."""

    def __init__(self, objective: Curved, start: FloatArray, space: ParameterSpace) -> None:
        self.objective = objective
        self.box = _Box(space)
        self.evaluated = 1
        self.w = feasible(start, space)
        self.here = objective.fisher(self.w)
        if not np.isfinite(self.here.loss):
            raise FitError(f"the loss is {self.here.loss} at the parameters {self.w.tolist()}")
        self.seen: deque[_Seen] = deque(maxlen=_REMEMBERED)
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget what steps have shown of the objective."""
        self.damping = _FIRST_DAMPING
        self.trusted = False
        self.seen.clear()

    def advance(self, tolerance: float) -> bool:
        """Try a step; say whether there is nothing left to gain, as far as damping lets see."""
        curvature = _corrected(self.here.information, self.seen)
        found = self.box.step(self.here.gradient, curvature, self.w, self.damping)
        if found is None:  # too flat or too steep for the solver: keep closer
            self._keep_closer()
            return False
        step, predicted = found
        small = tolerance * self.here.loss
        if predicted < small * (1.0 if self.trusted else _NEGLIGIBLE):
            return True
        trial = self.objective.fisher(self.w + step)
        self.evaluated += 1
        gained = self.here.loss - trial.loss
        self.damping = _next_damping(self.damping, gained / predicted)
        self.trusted = gained >= 0.5 * predicted
        if self.trusted:
            self.seen.clear()
        else:
            self.seen.append(_Seen(step, trial.gradient - self.here.gradient))
        if gained > 0:  # not where the loss is not finite
            self.w, self.here = self.w + step, trial
        return 0 < gained < small or self.damping > _MOST_DAMPING

    def confirms(self, tolerance: float) -> bool:
        """Return whether an end is one without damping too, which makes any step small."""
        if self.trusted and self.damping <= _LITTLE_DAMPING:
            return True
        before = self.here.loss
        self.begin_anew()
        self.advance(tolerance)
        return before - self.here.loss < tolerance * before

    def _keep_closer(self) -> None:
        self.evaluated += 1
        self.damping = _next_damping(self.damping, 0.0)
        if self.damping > _MOST_DAMPING:
            raise FitError(
                f"no step could be computed at the parameters {self.w.tolist()}, "
                f"where the gradient is {self.here.gradient.tolist()}"
            )

    def ended(self, *, converged: bool) -> Minimum:
        """Return where the search is as where it ended."""
        return Minimum(self.w, self.here.loss, self.here.information, self.evaluated, converged)


class _Seen(NamedTuple):
    """How the gradient changed along a step."""

    step: FloatArray
    change: FloatArray


def _corrected(information: FloatArray, seen: Iterable[_Seen]) -> FloatArray:
    """Raise the curvature to what was seen along the last steps.

    Fisher's information leaves out how the predictions themselves bend; where an objective
    has a narrow curved valley, and steps would oscillate across it.
    """
    for step, change in seen:
        along = float(step @ change)
        expected = information @ step
        foretold = float(step @ expected)
        if np.isfinite(along) and along > foretold > 0:
            information = (
                information
                - np.outer(expected, expected) / foretold
                + np.outer(change, change) / along
            )
    return information


def _next_damping(damping: float, achieved: float) -> float:
    """Trust the quadratic model more where it foretold the gain, and less where not."""
    if achieved > 0.75:
        return max(damping * 0.4, _LEAST_DAMPING)
    if achieved >= 0.25:
        return damping
    return max(damping * 15, 1e-3)


class _Box:
    """The bounds and the order of parameters, ready for the solver."""

    def __init__(self, space: ParameterSpace) -> None:
        self.space = space
        self.lower = np.maximum(space.lower, -_UNBOUNDED)
        self.upper = np.minimum(space.upper, _UNBOUNDED)
        self.low = np.array([low for low, _ in space.ordered], np.int64)
        self.high = np.array([high for _, high in space.ordered], np.int64)
        units = np.eye(len(space))
        self.order = units[self.high] - units[self.low]
        self.unbounded = np.full(len(self.order), _UNBOUNDED)

    def step(
        self, gradient: FloatArray, information: FloatArray, w: FloatArray, damping: float
    ) -> tuple[FloatArray, float] | None:
        """Minimise the damped quadratic model of the objective around `w`.

        Returns the step and by how much the quadratic model without damping falls; None if the
        solver found no minimum.
        """
        # In units in which every parameter has a curvature of 1.
        scale = np.sqrt(np.maximum(information.diagonal(), 0.0))
        scale[scale <= 0] = 1.0
        curvature = information / (scale[:, None] * scale)
        slope = gradient / scale
        damped = curvature.copy()
        damped.flat[:: len(w) + 1] += damping
        solution, _, flag, _ = daqp.solve(
            damped,
            slope,
            self.order / scale,
            np.concatenate([scale * (self.upper - w), self.unbounded]),
            np.concatenate([scale * (self.lower - w), w[self.low] - w[self.high]]),
            np.zeros(len(w) + len(self.order), np.int32),
        )
        if flag != _SOLVED or not np.isfinite(solution).all():
            return None
        # The solver keeps bounds to within its tolerance; models want them kept exactly.
        moved = np.minimum(np.maximum(w + solution / scale, self.lower), self.upper)
        if len(self.order):
            moved = feasible(moved, self.space)
        taken = (moved - w) * scale
        return moved - w, float(-(slope @ taken) - 0.5 * taken @ curvature @ taken)
