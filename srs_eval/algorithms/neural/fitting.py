"""Fits of networks to one user, from drawn or pretrained weights, and pretraining on many."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from srs_eval.algorithms.algorithm import Algorithm, Learned
from srs_eval.algorithms.neural.network import (
    Network,
    NetworkModel,
    Sizes,
    TrainingBatch,
    empty_network,
    scaling_of,
    summed_loss,
    training_batches,
)
from srs_eval.algorithms.neural.recipes import Recipes
from srs_eval.algorithms.neural.sequences import Histories, groups_of_targets, histories_before
from srs_eval.algorithms.neural.training import Recipe, epochs, generator_from
from srs_eval.algorithms.options import require_above_zero, require_whole
from srs_eval.algorithms.recurrent.weights import TrainingLog, Weights, pooled, weights_for
from srs_eval.data.reviews import FloatArray, IntArray, Reviews
from srs_eval.errors import ConfigError, FitError, FitSkipped

LONGEST_TRAINED_HISTORY = 64


@dataclass(frozen=True)
class NetworkAlgorithm(Algorithm):
    """Training of a network on each user's own reviews; a subclass says which network.

    Cards are dealt to batches at random, each card is read once and predicts all its training
    reviews on the way (those with more than 64 earlier reviews are left out), and the weights
    after the last epoch are kept. It may start from what was learned from other users: users that
    the weights have seen are skipped, recognised by how their logs begin (see `Weights.seen_in`).

    Parameters
    ----------
    epochs : int, optional
        How often each training review is used; None: by the recipe for drawn or learned weights.
    batch_size : int, optional
        About how many training reviews make a step; None: likewise.
    learning_rate : float, optional
        The largest there is; None: likewise.
    weights : str, Path or Weights, optional
        A safetensors file that `pretrain` and `Weights.save` made, or what it would hold; None:
        weights are drawn.
    """

    epochs: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    weights: str | Path | Weights | None = None
    name: ClassVar[str]
    network: ClassVar[type[Network]]
    recipes: ClassVar[Recipes]

    def __post_init__(self) -> None:
        for option in ("hidden", "epochs", "batch_size"):
            if (value := getattr(self, option, None)) is not None:
                require_whole(self.name, option, value, least=1)
        if self.learning_rate is not None:
            require_above_zero(self.name, "learning_rate", self.learning_rate)
        self.start_weights()

    def sizes(self, *, whole_days: bool) -> Sizes:
        """Return the arguments that the network is built with."""
        return ()

    def start_weights(self) -> Weights | None:
        """Weights to start from; None: drawn ones."""
        sizes = [self.sizes(whole_days=whole_days) for whole_days in (True, False)]
        return weights_for(self.name, sizes, self.weights)

    @property
    def pretrained(self) -> bool:
        """Whether it starts from weights that were learned from other users."""
        return self.weights is not None

    @property
    def recipe(self) -> Recipe:
        """The recipe for drawn or for learned weights, with the options in it."""
        options = {name: getattr(self, name) for name in ("epochs", "batch_size", "learning_rate")}
        options = {name: value for name, value in options.items() if value is not None}
        return replace(
            self.recipes.drawn if self.weights is None else self.recipes.learned, **options
        )

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> NetworkModel:
        """Train a network on the outcomes of `rows`, int [n]: row numbers in the log of one user.

        Only the reviews before each of `rows` on its card are read; `rng` draws the first weights
        and the order of the batches. Raise `FitSkipped` if none of `rows` has an earlier review of
        its card (and at most 64 of them), or the weights to start from were learned from this user;
        raise `FitError` if the loss or a parameter stopped being a number.
        """
        return deque(self.fit_in_steps(reviews, rows, rng), maxlen=1).pop()

    def fit_in_steps(
        self, reviews: Reviews, rows: IntArray, rng: np.random.Generator
    ) -> Iterator[NetworkModel]:
        """Train as `fit` does, yielding the model as it stands after each epoch."""
        weights, recipe = self.start_weights(), self.recipe
        if weights is not None:
            weights.refuse(self.name, reviews)
        histories = histories_before(reviews, rows, longest=LONGEST_TRAINED_HISTORY)
        n_targets = len(histories.target)
        if not n_targets and weights is None:
            raise FitSkipped(
                f"user {reviews.user}: {self.name} needs at least 1 training review with 1 to "
                f"{LONGEST_TRAINED_HISTORY} earlier reviews of its card, none of the "
                f"{len(rows)} has"
            )
        generator = generator_from(int(rng.integers(2**63)))
        sizes = self.sizes(whole_days=reviews.whole_days)
        if weights is None:
            network, scaling = self.drawn_network(histories, generator)
        else:
            scaling = weights.scaling
            network = empty_network(self.network, sizes, scaling)
            network.load(np.array(weights.parameters))
        order, losses = rng.permutation(len(histories.length)), []
        size = max(n_targets, 1) * recipe.batch_size ** (recipe.exponent - 1)
        for loss in _training(network, histories, order, recipe, generator):
            parameters = network.vector()
            if not (math.isfinite(loss) and np.isfinite(parameters).all()):
                raise FitError(
                    f"user {reviews.user}: {self.name} diverged on {n_targets} training reviews: "
                    f"try a learning_rate below {recipe.learning_rate}"
                )
            losses.append(loss / size)
            learned = Learned(training_loss=tuple(losses))
            yield NetworkModel(self.network, sizes, tuple(parameters.tolist()), scaling, learned)

    def drawn_network(
        self, histories: Histories, generator: torch.Generator
    ) -> tuple[Network, tuple[float, ...]]:
        """Draw the weights of a network, and return its scaling for some reviews."""
        network = empty_network(self.network, self.sizes(whole_days=histories.reviews.whole_days))
        network.draw(generator)
        if scaling := scaling_of(network, histories):
            network.set_scaling(scaling)
        return network, scaling

    def pretrain(self, users: Iterable[TrainingLog], rng: np.random.Generator) -> Self:
        """Learn from the outcomes of the given rows of many users, all pooled as if one user's."""
        logs, recipe = list(users), self.recipes.pretraining
        histories = histories_before(*pooled(logs), longest=LONGEST_TRAINED_HISTORY)
        if not len(histories.target):
            raise ConfigError(f"{self.name}: the given users have no reviews to learn from")
        generator = generator_from(int(rng.integers(2**63)))
        network, scaling = self.drawn_network(histories, generator)
        order = rng.permutation(len(histories.length))
        deque(_training(network, histories, order, recipe, generator), maxlen=0)
        sizes = self.sizes(whole_days=histories.reviews.whole_days)
        how = {"epochs": recipe.epochs, "learning_rate": recipe.learning_rate}
        vector = network.vector()
        weights = Weights.learned(self.name, sizes, vector, logs, scaling, settings=how)
        return replace(self, weights=weights)


def _training(
    network: Network,
    histories: Histories,
    order: IntArray,
    recipe: Recipe,
    generator: torch.Generator,
) -> Iterator[float]:
    """Train a network in place, yielding the loss of each epoch."""
    groups = groups_of_targets(histories, order, per_group=recipe.batch_size)
    batches = training_batches(
        network, histories, groups, recency_weights(len(histories.rows), recipe)
    )
    if not batches:
        yield 0.0
        return
    parameters = list(network.parameters())
    centre = [parameter.detach().clone() for parameter in parameters]

    def loss(batch: TrainingBatch) -> Tensor:
        fitting: Tensor = summed_loss(network, batch)
        fitting = fitting * float(len(batch.entry)) ** (recipe.exponent - 1)
        if not recipe.prox:
            return fitting
        return fitting.add(squared_distance(parameters, centre) * recipe.prox)

    network.train()
    yield from epochs(parameters, batches, loss, recipe, generator, network.clip)


def recency_weights(n: int, recipe: Recipe) -> FloatArray:
    """Weight of each of n training reviews in time order, with mean 1."""
    slope, power = recipe.recency
    weight = 1 + slope * np.linspace(0, 1, n) ** power
    scaled: FloatArray = weight / weight.mean() if n else weight
    return scaled


def squared_distance(parameters: Sequence[Tensor], centre: Sequence[Tensor]) -> Tensor:
    """Squared distance of parameters from a centre."""
    squares = [((p - c) ** 2).sum() for p, c in zip(parameters, centre, strict=True)]
    return torch.stack(squares).sum()
