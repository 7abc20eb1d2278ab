"""Weights that let recent reviews count more in a fit."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from srs_eval.nouns import FloatArray

Recency = Literal["none", "mild", "steep", "quartic", "exponential"]
RECENCIES: tuple[Recency, ...] = get_args(Recency)


def recency_weights(count: int, recency: Recency, half_life: float) -> FloatArray:
    """Weigh `count` training reviews by their age, oldest first.

    ``mild`` is 0.25 + 0.75 x**3 with x from 0 for the oldest to 1, published for FSRS-6; ``steep``
    is 0.0667 + 0.9333 x**11.25 with x = i / count, published for FSRS-7; ``quartic`` is 0.1 + 0.9
    x**4, published for the logistic regression; ``exponential`` halves the weight every
    `half_life`, a share of all reviews; ``none`` weighs all alike.

    >>> recency_weights(3, "mild", 0.5).tolist()
    [0.25, 0.34375, 1.0]
    """
    if recency == "mild":
        return 0.25 + 0.75 * np.linspace(0, 1, count) ** 3
    if recency == "steep":
        return 0.0667 + 0.9333 * (np.arange(count) / count) ** 11.25
    if recency == "quartic":
        return 0.1 + 0.9 * np.linspace(0, 1, count) ** 4
    if recency == "exponential":
        return 0.5 ** (np.linspace(1, 0, count) / half_life)
    return np.ones(count)
