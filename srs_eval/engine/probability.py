"""Probabilities that never claim certainty."""

from __future__ import annotations

import numpy as np

from srs_eval.nouns import FloatArray

_SMALLEST = float(np.finfo(np.float64).tiny)
_LARGEST = 1.0 - float(np.finfo(np.float64).epsneg)


def uncertain(p: FloatArray) -> FloatArray:
    """Replace a 0 or 1 by the nearest ordinary number inside (0, 1).

    Moves nothing by more than 1.2e-16, which no score shows, but keeps the promise that a
    prediction is never certain. NaN stays NaN, for the caller to refuse.

    >>> import numpy as np
    >>> uncertain(np.array([0.0, 0.5, 1.0])).tolist()
    [2.2250738585072014e-308, 0.5, 0.9999999999999999]
    """
    return np.minimum(np.maximum(p, _SMALLEST), _LARGEST)
