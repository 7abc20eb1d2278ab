"""The equations of published models, and parameters for them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from srs_eval.algorithms.fsrs.fsrs1 import Fsrs1Equations
from srs_eval.algorithms.fsrs.fsrs2 import Fsrs2Equations
from srs_eval.algorithms.fsrs.fsrs3 import Fsrs3Equations
from srs_eval.algorithms.fsrs.fsrs4 import Fsrs4Equations
from srs_eval.algorithms.fsrs.fsrs5 import Fsrs5Equations
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6Equations
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7Equations
from srs_eval.algorithms.fsrs.fsrs45 import Fsrs45Equations
from srs_eval.algorithms.half_life.hlr import HlrEquations
from srs_eval.algorithms.schedulers.sbd import SbdEquations
from srs_eval.engine.equations import Equations
from srs_eval.engine.objective import feasible

PUBLISHED: dict[str, Equations] = {
    "fsrs1": Fsrs1Equations(),
    "fsrs2": Fsrs2Equations(),
    "fsrs3": Fsrs3Equations(),
    "fsrs4": Fsrs4Equations(),
    "fsrs45": Fsrs45Equations(),
    "fsrs5": Fsrs5Equations(),
    "fsrs6": Fsrs6Equations(),
    "fsrs7": Fsrs7Equations(),
    "hlr": HlrEquations(),
    "sbd": SbdEquations(),
}


def ordinary_bounds(equations: Equations) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bounds of the parameters; one unit around the default where there are none."""
    space = equations.parameters
    lower, upper, default = (np.array(x) for x in (space.lower, space.upper, space.defaults))
    return (
        np.where(np.isfinite(lower), lower, default - 1),
        np.where(np.isfinite(upper), upper, default + 1),
    )


def random_parameters(
    equations: Equations, rng: np.random.Generator, reach: float = 1.0
) -> NDArray[np.float64]:
    """Go a random share of the way, up to `reach`, from each default to one of its bounds."""
    default = np.array(equations.parameters.defaults)
    lower, upper = ordinary_bounds(equations)
    bound = np.where(rng.random(len(default)) < 0.5, lower, upper)
    w = default + reach * rng.random(len(default)) * (bound - default)
    return feasible(w, equations.parameters)
