"""How long after a first review recall has fallen to a given probability."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq

from srs_eval.engine.equations import Equations, NumpyMaths

# Logarithms of the shortest and longest interval in days that is told.
_SHORTEST, _LONGEST = math.log(1e-9), math.log(1e9)
_RATINGS = {"again": 1, "hard": 2, "good": 3, "easy": 4}


def first_intervals(
    equations: Equations, parameters: tuple[float, ...], retention: float
) -> dict[str, float | None]:
    """Return the days until recall has fallen to `retention` after a first review, by rating.

    The forgetting curve is solved, whatever its form; None where that takes less than 1e-9 or more
    than 1e9 days. In FSRS v4 to 6, 90 % is reached after the stability; in FSRS-7, whose curve is a
    mixture, no stability in the state says when.

    >>> from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6Equations
    >>> published = Fsrs6Equations.parameters.defaults
    >>> round(first_intervals(Fsrs6Equations(), published, 0.9)["good"], 9), published[2]
    (2.3065, 2.3065)
    """
    w, m = np.asarray(parameters), NumpyMaths()

    def days(rating: int) -> float | None:
        state = equations.init(m, w, np.float64(rating))

        def above(log_days: float) -> float:
            return float(equations.curve(m, w, state, np.exp(log_days))) - retention

        if above(_SHORTEST) < 0 or above(_LONGEST) > 0:
            return None
        return float(np.exp(brentq(above, _SHORTEST, _LONGEST, xtol=1e-12)))

    return {name: days(rating) for name, rating in _RATINGS.items()}
