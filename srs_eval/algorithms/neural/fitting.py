"""How every network is fitted to one user, from nothing or from pretrained weights."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from srs_eval.algorithms.algorithm import Algorithm, Learned
from srs_eval.algorithms.neural.network import (
    Device,
    Network,
    NetworkModel,
    Sizes,
    TrainingBatch,
    built,
    scaling_of,
    summed_loss,
    training_batches,
)
from srs_eval.algorithms.neural.sequences import Histories, groups_of_targets, histories_before
from srs_eval.algorithms.neural.training import (
    Recipe,
    epochs,
    generator_from,
    last_of,
    with_own_seed,
)
from srs_eval.algorithms.recurrent.weights import TrainingLog, Weights, weights_for
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
        How often each training review is used; None: as `fine_tuning` says with weights, and as
        `recipe` says without.
    batch_size : int, optional
        About how many training reviews make a step; None: likewise.
    learning_rate : float, optional
        The largest there is; None: likewise.
    device : {"cpu", "cuda"}
        Where to compute; one user is far too little to fill a GPU.
    weights : str, Path or Weights, optional
        A safetensors file that `pretrain` and `Weights.save` made, or what it would hold; None:
        weights are drawn.
    """

    epochs: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    device: Device = "cpu"
    weights: str | Path | Weights | None = None
    name: ClassVar[str]
    network: ClassVar[type[Network]]
    recipe: ClassVar[Recipe]
    fine_tuning: ClassVar[Recipe]

    def __post_init__(self) -> None:
        """Refuse values that cannot be trained with, all at once."""
        wrong = [
            f"{name}={value} (expected a whole number of at least 1)"
            for name in ("hidden", "epochs", "batch_size", "outer_steps")
            if (value := getattr(self, name, None)) is not None
            and (not isinstance(value, int) or isinstance(value, bool) or value < 1)
        ]
        rate: object = self.learning_rate
        if rate is not None and not (isinstance(rate, int | float) and 0 < rate < math.inf):
            wrong.append(f"learning_rate={rate} (expected a number above 0)")
        if self.device not in ("cpu", "cuda"):
            wrong.append(f"device={self.device} (expected cpu or cuda)")
        elif self.device == "cuda" and not torch.cuda.is_available():
            wrong.append("device=cuda (PyTorch finds no usable GPU here: use device=cpu)")
        if wrong:
            raise ConfigError(f"{self.name}: " + "; ".join(wrong))
        self.learned()

    def sizes(self, *, whole_days: bool) -> Sizes:
        """Return the arguments that the network is built with."""
        return ()

    def learned(self) -> Weights | None:
        """Weights to start from; None: drawn ones."""
        sizes = [self.sizes(whole_days=whole_days) for whole_days in (True, False)]
        return weights_for(self.name, sizes, self.weights)

    @property
    def pretrained(self) -> bool:
        """Whether it starts from weights that were learned from other users."""
        return self.weights is not None

    def with_weights(
        self, network: Network, scaling: Sequence[float], logs: Sequence[TrainingLog], **how: Any
    ) -> Self:
        """Return this algorithm with weights learned from some logs."""
        sizes = self.sizes(whole_days=logs[0][0].whole_days)
        vector = network.vector()
        weights = Weights.learned(self.name, sizes, vector, logs, tuple(scaling), **how)
        return replace(self, weights=weights)

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> NetworkModel:
        """Train a network on the outcomes of `rows`, int [n]: row numbers in the log of one user.

        Only the reviews before each of `rows` on its card are read; `rng` draws the first weights
        and the order of the batches. Raise `FitSkipped` if none of `rows` has an earlier review of
        its card (and at most 64 of them), or the weights to start from were learned from this user;
        raise `FitError` if the loss or a parameter stopped being a number.
        """
        return last_of(self.fit_in_steps(reviews, rows, rng))

    def fit_in_steps(
        self, reviews: Reviews, rows: IntArray, rng: np.random.Generator
    ) -> Iterator[NetworkModel]:
        """Train as `fit` does, yielding the model as it stands after each epoch."""
        weights = self.learned()
        if weights is not None:
            weights.refuse(self.name, reviews)
        histories = histories_before(reviews, rows, longest=LONGEST_TRAINED_HISTORY)
        if not len(histories.target) and weights is None:
            raise FitSkipped(
                f"user {reviews.user}: {self.name} needs at least 1 training review with 1 to "
                f"{LONGEST_TRAINED_HISTORY} earlier reviews of its card, none of the "
                f"{len(rows)} has"
            )
        generator = generator_from(int(rng.integers(2**63)))
        network, scaling = self.start(weights, histories, generator)
        order = rng.permutation(len(histories.length))
        recipe, losses = self.current_recipe(), []
        size = max(len(histories.target), 1) * recipe.batch_size ** (recipe.exponent - 1)
        for loss in self.training(network, histories, order, recipe, generator):
            losses.append(loss / size)
            model = self._model(network, scaling, loss, histories)
            yield replace(model, learned=Learned(training_loss=tuple(losses)))

    def current_recipe(self) -> Recipe:
        """Return the recipe for drawn or for pretrained weights, with the options given."""
        options = {name: getattr(self, name) for name in ("epochs", "batch_size", "learning_rate")}
        given = {name: value for name, value in options.items() if value is not None}
        return replace(self.recipe if self.weights is None else self.fine_tuning, **given)

    def start(
        self, weights: Weights | None, histories: Histories, generator: torch.Generator
    ) -> tuple[Network, tuple[float, ...]]:
        """Return the network that a fit starts from, and its scaling."""
        network = built(self.network, self.sizes(whole_days=histories.reviews.whole_days))
        if weights is None:
            network.draw(generator)
            scaling = scaling_of(network, [histories])
        else:
            network.load(np.array(weights.parameters))
            scaling = weights.scaling
        network.set_scaling(scaling)
        return network.to(self.device), scaling

    def training(
        self,
        network: Network,
        histories: Histories,
        order: IntArray,
        recipe: Recipe,
        generator: torch.Generator,
    ) -> Iterator[float]:
        """Train a network in place, yielding the loss of each epoch."""
        groups = groups_of_targets(histories, order, per_group=recipe.batch_size)
        weight = recency(len(histories.rows), recipe)
        batches = training_batches(network, histories, groups, self.device, weight=weight)
        if not batches:
            yield 0.0
            return
        parameters = list(network.parameters())
        centre = [parameter.detach().clone() for parameter in parameters]

        def loss(batch: TrainingBatch) -> Tensor:
            scale = float(len(batch.entry)) ** (recipe.exponent - 1)
            fitting: Tensor = summed_loss(network, batch) * scale
            return fitting.add(near(parameters, centre, recipe.prox))

        network.train()
        losses = epochs(parameters, batches, loss, recipe, generator, network.clip)
        yield from with_own_seed(losses, generator)

    def _model(
        self, network: Network, scaling: tuple[float, ...], loss: float, histories: Histories
    ) -> NetworkModel:
        """Freeze what was learned, if it is made of numbers."""
        parameters, reviews = network.vector(), histories.reviews
        if not (math.isfinite(loss) and np.isfinite(parameters).all()):
            raise FitError(
                f"user {reviews.user}: {self.name} diverged on {len(histories.target)} training "
                f"reviews (summed log loss {loss}, {(~np.isfinite(parameters)).sum()} of "
                f"{len(parameters)} parameters not finite): try a learning_rate below "
                f"{self.current_recipe().learning_rate}"
            )
        sizes = self.sizes(whole_days=reviews.whole_days)
        return NetworkModel(self.network, sizes, tuple(parameters.tolist()), scaling, self.device)


def recency(n: int, recipe: Recipe) -> FloatArray:
    """Weight of each of n training reviews in time order, with mean 1."""
    slope, power = recipe.recency
    weight = 1 + slope * np.linspace(0, 1, n) ** power
    scaled: FloatArray = weight / weight.mean() if n else weight
    return scaled


def near(parameters: Sequence[Tensor], centre: Sequence[Tensor], strength: float) -> Tensor | float:
    """Penalise the squared distance from a centre."""
    if not strength:
        return 0.0
    apart = [((p - c) ** 2).sum() for p, c in zip(parameters, centre, strict=True)]
    penalty: Tensor = torch.stack(apart).sum() * strength
    return penalty
