"""Recipes of all networks: how each is fitted to one user, and pretrained on many."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from srs_eval.data.reviews import FloatArray


@dataclass(frozen=True, slots=True)
class Recipe:
    """Options of AdamW over batches of reviews, and weights of these."""

    epochs: int  # How often each training review is used
    batch_size: int  # About how many training reviews make a step
    learning_rate: float  # The largest
    # Share of the rate to begin with, share of the steps after which it is 1, and the share at the
    # end, straight from one to the next; None: from 1 to 0 along half a cosine
    ramps: tuple[float, float, float] | None = None
    # Weights decay by `weight_decay` times the learning rate at each step
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.0
    # A batch of B reviews counts as much as B**exponent; learning rates are multiplied by
    # 16000**(1 - exponent), as in the public benchmark
    exponent: float = 1.0
    # What the squared distance from the weights a fit starts from is multiplied by
    prox: float = 0.0
    clip: float = math.inf  # Longest gradient; longer ones are shortened
    # Weight of a training review is 1 + a x**b, with x from 0 at the first to 1 at the last; then
    # all are scaled to mean 1
    recency: tuple[float, float] = (0.0, 1.0)

    def pace(self, done: float) -> float:
        """Learning rate of the next step, after a share of all steps."""
        share = (1 + math.cos(math.pi * done)) / 2
        if self.ramps is not None:
            start, turn, end = self.ramps
            share = float(np.interp(done, (0, turn, 1), (start, 1, end)))
        return self.learning_rate * share * math.pow(16000, 1 - self.exponent)

    def weights(self, n: int) -> FloatArray:
        """Weights of n training reviews in time order."""
        slope, power = self.recency
        weight: FloatArray = 1 + slope * np.linspace(0, 1, n) ** power
        return weight / weight.mean() if n else weight


@dataclass(frozen=True, slots=True)
class Recipes:
    """Recipes of the fits of one network, and of its pretraining."""

    drawn: Recipe  # From drawn weights
    learned: Recipe  # From weights that were learned from other users
    pretraining: Recipe  # From drawn weights, on all reviews of many users as if they were one's


_LEARNED = Recipe(5, 512, 0.04, weight_decay=1e-5)
_POOLED = Recipe(32, 65_536, 0.04, weight_decay=1e-5)
_GRU_RECENCY, _LSTM_RECENCY = (20.3285, 2.8844), (6.49, 2.4758)

# Epochs, training reviews a step, and the largest learning rate come first.
RECIPES = {
    "gru": Recipes(Recipe(60, 512, 0.04, weight_decay=1e-5), _LEARNED, _POOLED),
    "gru_p": Recipes(
        Recipe(40, 512, 0.01, weight_decay=1e-5), Recipe(16, 512, 0.01, weight_decay=1e-5), _POOLED
    ),
    "transformer": Recipes(Recipe(20, 512, 0.04, weight_decay=1e-5), _LEARNED, _POOLED),
    "nn17": Recipes(Recipe(20, 512, 0.04), Recipe(5, 512, 0.04), Recipe(32, 65_536, 0.04)),
    "gru_curves": Recipes(
        drawn=Recipe(40, 512, 0.02, recency=_GRU_RECENCY),
        learned=Recipe(
            *(21, 8192, 0.0097342),
            ramps=(0.00062512 / 0.0097342, 6 / 21, 0.0023871 / 0.0097342),
            weight_decay=0.297537,
            exponent=1.18462,
            prox=1.87156e-5,
            clip=167.863,
            recency=_GRU_RECENCY,
        ),
        pretraining=Recipe(32, 65_536, 0.02),
    ),
    "lstm_curves": Recipes(
        drawn=Recipe(20, 512, 0.005, recency=_LSTM_RECENCY),
        learned=Recipe(
            *(20, 16_384, 0.0064553),
            ramps=(0.0019622 / 0.0064553, 5 / 20, 0.0034213 / 0.0064553),
            weight_decay=0.04855,
            exponent=1.2103,
            prox=0.000244,
            clip=7050.0,
            recency=_LSTM_RECENCY,
        ),
        pretraining=Recipe(32, 65_536, 0.005),
    ),
}
