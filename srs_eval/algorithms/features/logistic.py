"""Logistic regression on 34 features of a card's history."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

import numpy as np

from srs_eval.algorithms.features.log_odds import FittedLogOdds, Linear, LogLoss
from srs_eval.algorithms.features.logistic_features import features
from srs_eval.algorithms.fitted import Problem
from srs_eval.algorithms.history import History, history_of
from srs_eval.data.reviews import FloatArray, IntArray
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.engine.reference import Adam, Recipe, shuffles
from srs_eval.errors import FitError

# fmt: off
_MEAN = (
    -.9012, -.6941, -.6258, -.4678, .3926, .1316, .3508, -.3259, -.2125, -.1402, 1.2775, .0669,
    .3914, .5828, .9292, 1.1583, 1.4103, .9388, .9164, .9797, -.6411, .4951, .1038, -.1564, .4332,
    .3287, .3429, .4068, -.1779, -.0585, -.1062, -.3521, -.1613, -.1758,
)
_SPREAD = (
    .2869, .2811, .2910, .2166, .1740, .1612, .1428, .1352, .1284, .0331, .4013, .2065, .2022,
    .1670, .2454, .2954, .2896, .3473, .5685, .2795, .1298, .0467, .1200, .1317, .0785, .1190,
    .0854, .1634, .1892, .1052, .0750, .1913, .1372, .0783,
)
# fmt: on
_DECAY = 0.3
_SHUFFLE_SEED = 42


@dataclass(frozen=True, slots=True)
class LogisticEquations:
    """Log-odds of recall as a weighted sum of 34 features."""

    parameters: ClassVar[ParameterSpace] = ParameterSpace(
        _MEAN, lower=(-math.inf,) * 34, upper=(math.inf,) * 34, spread=_SPREAD
    )

    def at(self, history: History, rows: IntArray, elapsed: FloatArray) -> Linear:
        return Linear(features(history, rows, elapsed))


class Logistic(FittedLogOdds):
    """Logistic regression of recall on features of a card's history.

    From the public benchmark (srs-benchmark, 2026). Reads elapsed time, whole days and ratings,
    those of same-day reviews included; 34 parameters. Made for fractional days: in
    whole days it cannot count same-day reviews, and is far worse. More recent training reviews
    count more: 0.1 + 0.9 x**4 with x from 0 for the oldest to 1, unless said otherwise. Published
    row, without same-day reviews: log loss 0.3393, RMSE(bins) 0.0604, AUC 0.7108.

    The public trainer moves each coefficient in units of a scale of its own; ``newton`` takes
    these scales for the spread among users, with a prior of weight 0.3.
    """

    name = "logistic"
    mathematics = LogisticEquations
    same_day = True
    own_recency = "quartic"
    published_recency = "quartic"
    own_prior_weight = 0.3
    recipe = Recipe(
        learning_rate=0.2,
        betas=(0.0, 0.85),
        epochs=10,
        batch=2048,
        keep="last",
        sort=False,
        longest_history=None,
        decimals=None,
    )

    def trained(
        self, problem: Problem, rows: IntArray, start: FloatArray
    ) -> tuple[FloatArray, str]:
        """Train as the public benchmark does: AdamW on how many spreads each one has moved.

        The original shuffles reviews without a seed; here it is PyTorch's order of seed 42.
        """
        recipe, spread, weight = self.recipe, np.asarray(_SPREAD), self.weights(len(rows))
        reviews = problem.reviews
        inputs = features(history_of(reviews), rows, reviews.elapsed[rows])
        recalled = reviews.recalled[rows].astype(np.float64)
        cuts = recipe.cuts(len(rows))
        steps = len(cuts) * recipe.epochs
        adam = Adam(recipe, len(start), steps)
        moved = np.zeros(len(start))
        orders = islice(shuffles(len(rows), _SHUFFLE_SEED), recipe.epochs)
        batches = (np.array(order)[cut] for order in orders for cut in cuts)
        for step, batch in enumerate(batches):
            loss = LogLoss(Linear(inputs[batch]), recalled[batch], weight[batch])
            gradient = loss.gradient(start + spread * moved).gradient
            rate = recipe.learning_rate * (1 + np.cos(np.pi * step / steps)) / 2
            moved = moved * (1 - rate * _DECAY) - adam.step(gradient * spread)
        w: FloatArray = start + spread * moved
        if not np.isfinite(w).all():
            raise FitError(f"the training loss has no finite slope: it led to {w.tolist()}")
        return w, ""
