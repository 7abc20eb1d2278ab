"""A score of a model where it disagrees with another: UM+, the Universal Metric of two models."""

from __future__ import annotations

import numpy as np

from srs_eval.data.reviews import BoolArray, FloatArray

_STEPS = 20  # Of the difference between two predictions: bins are a twentieth wide


def um_plus(p: FloatArray, other: FloatArray, recalled: BoolArray) -> float:
    """Compute UM+ of a model against another, on reviews that both predicted.

    Reviews are sorted into bins by how much the predictions `p` and `other` differ, a twentieth
    wide, and the mean prediction is compared with the share of recalls in each: the root of the
    mean square over reviews. A bias where the other model disagrees cannot cancel, as it can in
    calibration. From 0 to 1, lower is better; 0 reviews give NaN. Noise alone raises it, the more
    the fewer the reviews of a bin are.

    Source: open-spaced-repetition/fsrs-vs-sm17, 2025, after SuperMemo's Universal Metric.

    >>> p, recalled = np.array([0.9, 0.9, 0.5, 0.5]), np.array([True, True, True, False])
    >>> um_plus(p, np.array([0.9, 0.9, 0.9, 0.9]), recalled), um_plus(p, p, recalled)
    (0.07071067811865474, 0.04999999999999999)
    """
    if not len(p):
        return float("nan")
    step = np.rint(_STEPS * (p.astype(np.float64) - other)).astype(np.int64) + _STEPS
    reviews = np.bincount(step, minlength=2 * _STEPS + 1)
    bias = np.bincount(step, p - recalled.astype(np.float64), minlength=2 * _STEPS + 1)
    return float(np.sqrt((bias[reviews > 0] ** 2 / reviews[reviews > 0]).sum() / len(p)))
