"""The public benchmark's trainer: mini-batches of reviews sorted by history length, and Adam.

Source: open-spaced-repetition/srs-benchmark, 2026. Every batch counts each of its reviews on
its own, as the original does with one sequence per review; here the reviews of a card that
fall into one batch share a walk, which changes nothing but the time it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from srs_eval.data.cards import CardRows, rows_by_card
from srs_eval.data.reviews import BoolArray, FloatArray, IntArray, Reviews
from srs_eval.engine.objective import Curved, Objective, feasible
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.errors import FitError

_SHUFFLE_SEED = 2023
_EPSILON = 1e-8


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a model is trained by the public benchmark."""

    # Of Adam; the rate falls to 0 along a cosine
    learning_rate: float = 0.04
    betas: tuple[float, float] = (0.9, 0.999)
    # Passes over the training reviews, and reviews per step
    epochs: int = 5
    batch: int = 512
    # {"best", "last"}: Which of the parameters after each epoch (and before the first) are kept:
    # those of the lowest training loss, or the last
    keep: Literal["best", "last"] = "best"
    # Whether reviews are batched by the length of their history, rather than by time
    sort: bool = True
    # Reviews with more earlier ones on their card are not trained on
    longest_history: int | None = 64
    later_only: bool = False  # Whether the first later-day review of each card is left out
    frozen: tuple[int, ...] = ()  # Parameters that keep their start
    penalty: float = 0.0  # Weight of the pull towards the start
    decimals: int | None = 4  # To which parameters are rounded in the end

    def trains_on(self, reviews: Reviews, rows: IntArray, cards: CardRows) -> BoolArray:
        """Mark the rows that are trained on."""
        trained = np.ones(len(rows), bool)
        if self.longest_history is not None:
            trained &= cards.nth[rows] <= self.longest_history
        if self.later_only:
            trained &= cards.earlier(reviews.elapsed_days > 0)[rows] > 0
        return trained

    def cuts(self, count: int) -> list[slice]:
        """Cut so many reviews into batches."""
        return [slice(cut, cut + self.batch) for cut in range(0, count, self.batch)]


def train(
    loss_of: Callable[[IntArray, FloatArray], Curved],
    reviews: Reviews,
    rows: IntArray,
    weight: FloatArray,
    start: FloatArray,
    penalty_matrix: FloatArray,
    space: ParameterSpace,
    recipe: Recipe,
) -> FloatArray:
    """Train as the public benchmark does, from `start`, the centre of the penalty.

    `loss_of` gives the loss of some rows with their weights. The recipe trains on all `rows`, which
    are in time order, and has a weight of its own for the penalty.
    """
    pull = recipe.penalty * penalty_matrix

    def objective(some: IntArray) -> Objective:
        return Objective(loss_of(rows[some], weight[some]), start, pull * len(some) / len(rows))

    everything = np.arange(len(rows))
    # by the length of the history, or by time
    lengths = rows_by_card(reviews.card).nth[rows] if recipe.sort else everything
    order = np.argsort(lengths, kind="stable")
    batches = [objective(np.sort(order[cut])) for cut in recipe.cuts(len(rows))]
    of_all = objective(everything)
    w = feasible(start, space)
    adam = Adam(recipe, len(w), steps=len(batches) * recipe.epochs)
    best, lowest = w, of_all.gradient(w).loss
    shuffled = shuffles(len(batches))
    for _ in range(recipe.epochs):
        for number in next(shuffled):
            gradient = batches[number].gradient(w).gradient
            gradient[list(recipe.frozen)] = 0.0
            w = feasible(w - adam.step(gradient), space)
        loss = of_all.gradient(w).loss
        if not np.isfinite(loss):
            raise FitError(f"the training loss became {loss} at the parameters {w.tolist()}")
        if loss < lowest or recipe.keep == "last":
            best, lowest = w, loss
    return best if recipe.decimals is None else np.round(best, recipe.decimals)


class Adam:
    """Adam (Kingma & Ba 2015), its rate falling to 0 along a cosine over `steps`."""

    def __init__(self, recipe: Recipe, size: int, steps: int) -> None:
        self._recipe = recipe
        self._steps = steps
        self._taken = 0
        self._mean = np.zeros(size)
        self._square = np.zeros(size)

    def step(self, gradient: FloatArray) -> FloatArray:
        """Return what to subtract from the parameters."""
        first, second = self._recipe.betas
        rate = self._recipe.learning_rate * (1 + np.cos(np.pi * self._taken / self._steps)) / 2
        self._taken += 1
        self._mean = first * self._mean + (1 - first) * gradient
        self._square = second * self._square + (1 - second) * gradient**2
        mean = self._mean / (1 - first**self._taken)
        square = self._square / (1 - second**self._taken)
        step: FloatArray = rate * mean / (np.sqrt(square) + _EPSILON)
        return step


def shuffles(count: int, seed: int = _SHUFFLE_SEED) -> Iterator[list[int]]:
    """Yield the batch orders of the original, one per epoch.

    They are PyTorch's ``randperm`` from one generator: a Mersenne Twister, and a shuffle
    that swaps each place with a random later one.
    """
    generator = np.random.RandomState(seed)
    while True:
        order = list(range(count))
        places = np.arange(max(count - 1, 0))
        drawn = generator.randint(0, 2**32, len(places), dtype=np.uint32)
        others = places + drawn % (count - places)
        for place, other in enumerate(others.tolist()):
            order[place], order[other] = order[other], order[place]
        yield order
