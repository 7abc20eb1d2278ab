"""Fits by L-BFGS-B: slower than Newton's method, and nothing but the gradient is needed."""

from __future__ import annotations

import numpy as np
from scipy.optimize import Bounds, minimize

from srs_eval.engine.newton import Minimum
from srs_eval.engine.objective import Curved, feasible
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.errors import FitError
from srs_eval.nouns import FloatArray


def lbfgs(objective: Curved, start: FloatArray, space: ParameterSpace) -> Minimum:
    """Minimise an objective; its reviews should be packed in double precision."""
    if space.ordered:
        raise ValueError("L-BFGS-B knows bounds only: use newton for ordered parameters")
    first = feasible(start, space)
    # In units of the size of a parameter: curvatures lie further apart than this can mend.
    scale = np.maximum(np.abs(first), 0.1)

    def scaled(x: FloatArray) -> tuple[float, FloatArray]:
        loss, gradient = objective.gradient(x * scale)
        return loss, gradient * scale

    found = minimize(
        scaled,
        first / scale,
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(np.asarray(space.lower) / scale, np.asarray(space.upper) / scale),
        options={"maxiter": 500, "ftol": 1e-10, "gtol": 1e-6, "maxcor": 20},
    )
    w = feasible(np.asarray(found.x * scale, np.float64), space)
    if not (np.isfinite(found.fun) and np.isfinite(w).all()):
        raise FitError(f"the loss became {found.fun} at the parameters {w.tolist()}")
    there = objective.fisher(w)
    return Minimum(w, there.loss, there.information, int(found.nfev), bool(found.success))
