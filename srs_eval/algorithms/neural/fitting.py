"""Fits of networks to one user, from drawn or pretrained weights, and pretraining on many."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

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
from srs_eval.algorithms.neural.training import Adam, Ramps, Recipe, cosine, epochs, generator_from
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
        for option in ("hidden", "epochs", "batch_size", "outer_steps"):
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
            network, scaling = self.drawn_network([histories], generator)
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
        self, logs: Sequence[Histories], generator: torch.Generator
    ) -> tuple[Network, tuple[float, ...]]:
        """Draw the weights of a network, and return its scaling for the reviews of some users."""
        sizes = self.sizes(whole_days=logs[0].reviews.whole_days)
        network = empty_network(self.network, sizes)
        network.draw(generator)
        if scaling := scaling_of(network, logs):
            network.set_scaling(scaling)
        return network, scaling

    def pretrain(self, users: Iterable[TrainingLog], rng: np.random.Generator) -> Self:
        """Learn from the outcomes of the given rows of many users, all pooled as if one user's."""
        logs, recipe = list(users), self.recipes.pretraining
        histories = self._histories(*pooled(logs))
        generator = generator_from(int(rng.integers(2**63)))
        network, scaling = self.drawn_network([histories], generator)
        order = rng.permutation(len(histories.length))
        deque(_training(network, histories, order, recipe, generator), maxlen=0)
        return self._with_weights(network, scaling, logs, way="pooled", epochs=recipe.epochs)

    def _histories(self, reviews: Reviews, rows: IntArray) -> Histories:
        histories = histories_before(reviews, rows, longest=LONGEST_TRAINED_HISTORY)
        if not len(histories.target):
            raise ConfigError(f"{self.name}: the given users have no reviews to learn from")
        return histories

    def _with_weights(
        self, network: Network, scaling: tuple[float, ...], logs: Sequence[TrainingLog], **how: Any
    ) -> Self:
        sizes = self.sizes(whole_days=logs[0][0].whole_days)
        weights = Weights.learned(self.name, sizes, network.vector(), logs, scaling, **how)
        return replace(self, weights=weights)


@dataclass(frozen=True)
class ReptileAlgorithm(NetworkAlgorithm):
    """A network whose pretraining leads to where fits to new users are short.

    Nichol, Achiam & Schulman (2018), *On first-order meta-learning algorithms*,
    https://doi.org/10.48550/arXiv.1803.02999. Each outer step takes one user, trains a few steps on
    their reviews from the current weights, and takes how far that led as a gradient. The published
    networks took 100,000 outer steps, which are days on a CPU.

    Parameters
    ----------
    outer_steps : int
        How many users to learn from, one after the other, again and again in an order drawn
        for each round.

    Other options: see `NetworkAlgorithm`.
    """

    outer_steps: int = 2000

    def pretrain(self, users: Iterable[TrainingLog], rng: np.random.Generator) -> Self:
        """Learn where to start from on new users."""
        logs, inner, outer = list(users), self.recipes.pretraining, self.recipes.outer
        assert outer is not None
        histories = [
            histories_before(reviews, rows, longest=LONGEST_TRAINED_HISTORY)
            for reviews, rows in logs
        ]
        taught = [number for number, each in enumerate(histories) if len(each.target)]
        if not taught:
            raise ConfigError(f"{self.name}: the given users have no reviews to learn from")
        generator = generator_from(int(rng.integers(2**63)))
        network, scaling = self.drawn_network([histories[number] for number in taught], generator)
        parameters = list(network.parameters())
        adam = Adam(parameters, outer)
        turns: list[int] = []
        for step in range(self.outer_steps):
            turns = turns or rng.permutation(taught).tolist()
            lesson = histories[turns.pop()]
            before = [parameter.detach().clone() for parameter in parameters]
            order = rng.permutation(len(lesson.length))
            n_batches = -(-len(lesson.target) // inner.batch_size)
            # Where there are more batches than steps, the first ones of the random order do.
            if n_batches > inner.epochs:
                order = order[: len(order) * inner.epochs // n_batches]
            recipe = replace(inner, epochs=max(1, inner.epochs // n_batches))
            deque(_training(network, lesson, order, recipe, generator), maxlen=0)
            with torch.no_grad():
                updates = [old - new for old, new in zip(before, parameters, strict=True)]
                for parameter, old in zip(parameters, before, strict=True):
                    parameter.copy_(old)
            adam.step(updates, outer.learning_rate * warmed_cosine(step / self.outer_steps))
        settings = {"outer_steps": self.outer_steps, "inner_steps": inner.epochs}
        return self._with_weights(network, scaling, logs, way="reptile", **settings)


def warmed_cosine(done: float) -> float:
    """Rise from 1e-4 to 1 in the first tenth, then fall to 0 along half a cosine."""
    return Ramps(1e-4, 0.1, 1.0)(done) if done < 0.1 else cosine((done - 0.1) / 0.9)


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
