"""Recipes of all networks: how each is fitted to one user, and pretrained on many."""

from __future__ import annotations

from dataclasses import dataclass

from srs_eval.algorithms.neural.training import Ramps, Recipe


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
            schedule=Ramps(0.00062512 / 0.0097342, 6 / 21, 0.0023871 / 0.0097342),
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
            schedule=Ramps(0.0019622 / 0.0064553, 5 / 20, 0.0034213 / 0.0064553),
            weight_decay=0.04855,
            exponent=1.2103,
            prox=0.000244,
            clip=7050.0,
            recency=_LSTM_RECENCY,
        ),
        pretraining=Recipe(32, 65_536, 0.005),
    ),
}
