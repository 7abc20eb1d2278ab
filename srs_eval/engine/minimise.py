"""Fits within bounds by damped Gauss-Newton steps (Fisher scoring).

Every step minimises a quadratic model of the objective exactly, subject to the
bounds and the order of the parameters. Clipping a free step instead would stall at a bound.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

import daqp
import numpy as np

from srs_eval.data.reviews import FloatArray
from srs_eval.engine.objective import Curved, feasible
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.errors import FitError

_FIRST_DAMPING, _LEAST_DAMPING, _MOST_DAMPING = 1e-2, 1e-9, 1e9
_LITTLE_DAMPING = 0.1
_NEGLIGIBLE = 0.01
_REMEMBERED = 4  # steps
_SOLVED = 1
_UNBOUNDED = 1e30


@dataclass(frozen=True, slots=True)
class Minimum:
    """Where a fit ended."""

    parameters: FloatArray  # [parameters]
    value: float  # Of the objective
    information: FloatArray  # [parameters, parameters]: Curvature of the objective there
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
    search, converged = _Search(objective, start, space), False
    while search.evaluations < most_steps and not converged:
        converged = search.advance(tolerance) and search.confirms(tolerance)
    return Minimum(search.w, search.here.loss, search.here.information, converged)


class _Search:
    """Where a fit is, and how far it trusts its quadratic model."""

    def __init__(self, objective: Curved, start: FloatArray, space: ParameterSpace) -> None:
        self.objective, self.space = objective, space
        self.lower = np.maximum(space.lower, -_UNBOUNDED)
        self.upper = np.minimum(space.upper, _UNBOUNDED)
        self.low, self.high = np.array(space.ordered, np.int64).reshape(-1, 2).T
        units = np.eye(len(space))
        self.order = units[self.high] - units[self.low]
        self.evaluations = 1
        self.w = feasible(start, space)
        self.here = objective.fisher(self.w)
        if not np.isfinite(self.here.loss):
            raise FitError(f"the loss is {self.here.loss} at the parameters {self.w.tolist()}")
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget what steps have shown of the objective."""
        self.damping, self.trusted = _FIRST_DAMPING, False
        # the last steps, and how the gradient changed along them
        self.steps: deque[tuple[FloatArray, FloatArray]] = deque(maxlen=_REMEMBERED)

    def advance(self, tolerance: float) -> bool:
        """Try a step; say whether there is nothing left to gain, as far as damping lets see."""
        step, predicted = self._step()
        small = tolerance * self.here.loss
        if predicted < small * (1.0 if self.trusted else _NEGLIGIBLE):
            return True
        self.evaluations += 1
        if step is None:  # too flat or too steep for the solver: keep closer
            self._adapt(0.0)
            if self.damping > _MOST_DAMPING:
                raise FitError(
                    f"no step could be computed at the parameters {self.w.tolist()}, "
                    f"where the gradient is {self.here.gradient.tolist()}"
                )
            return False
        trial = self.objective.fisher(self.w + step)
        gained = self.here.loss - trial.loss
        self._adapt(gained / predicted)
        self.trusted = gained >= 0.5 * predicted
        if self.trusted:
            self.steps.clear()
        else:
            self.steps.append((step, trial.gradient - self.here.gradient))
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

    def _adapt(self, achieved: float) -> None:
        """Trust the quadratic model more where it foretold the gain, and less where not."""
        if achieved > 0.75:
            self.damping = max(self.damping * 0.4, _LEAST_DAMPING)
        elif not achieved >= 0.25:
            self.damping = max(self.damping * 15, 1e-3)

    def _step(self) -> tuple[FloatArray | None, float]:
        """Minimise the damped quadratic model of the objective around `w`.

        Returns the step and by how much the quadratic model without damping falls; no step if
        the solver found no minimum.
        """
        information = _corrected(self.here.information, self.steps)
        # In units in which every parameter has a curvature of 1.
        scale = np.sqrt(np.maximum(information.diagonal(), 0.0))
        scale[scale <= 0] = 1.0
        curvature = information / (scale[:, None] * scale)
        slope = self.here.gradient / scale
        damped = curvature.copy()
        damped.flat[:: len(scale) + 1] += self.damping
        unbounded = np.full(len(self.order), _UNBOUNDED)
        solution, _, flag, _ = daqp.solve(
            damped,
            slope,
            self.order / scale,
            np.concatenate([scale * (self.upper - self.w), unbounded]),
            np.concatenate([scale * (self.lower - self.w), self.w[self.low] - self.w[self.high]]),
            np.zeros(len(scale) + len(self.order), np.int32),
        )
        if flag != _SOLVED or not np.isfinite(solution).all():
            return None, np.inf
        # The solver keeps bounds to within its tolerance; models want them kept exactly.
        moved = np.minimum(np.maximum(self.w + solution / scale, self.lower), self.upper)
        if len(self.order):
            moved = feasible(moved, self.space)
        step = (moved - self.w) * scale
        return moved - self.w, float(-(slope @ step) - 0.5 * step @ curvature @ step)


def _corrected(
    information: FloatArray, steps: Iterable[tuple[FloatArray, FloatArray]]
) -> FloatArray:
    """Raise the curvature to what was seen along the last steps.

    Fisher's information leaves out how the predictions themselves bend; where an objective
    has a narrow curved valley, and steps would oscillate across it.
    """
    for step, change in steps:
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
