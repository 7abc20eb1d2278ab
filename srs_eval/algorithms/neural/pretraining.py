"""Learning from other users before being fitted to one: all pooled, or one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import torch

from srs_eval.algorithms.neural.fitting import LONGEST_TRAINED_HISTORY, NetworkAlgorithm
from srs_eval.algorithms.neural.network import Network, scaling_of
from srs_eval.algorithms.neural.sequences import Histories, histories_before
from srs_eval.algorithms.neural.training import Adam, Ramps, Recipe, cosine, generator_from, last_of
from srs_eval.algorithms.recurrent.weights import TrainingLog, pooled
from srs_eval.errors import ConfigError


@dataclass(frozen=True)
class PooledPretraining(NetworkAlgorithm):
    """A network that can be pretrained on the reviews of many users as if they were one's.

    As published: 32 epochs, learning rate 0.04, batches of 65,536 reviews.
    """

    pretraining: ClassVar[Recipe] = Recipe(32, 65_536, 0.04, weight_decay=1e-5)
    fine_tuning: ClassVar[Recipe] = Recipe(5, 512, 0.04, weight_decay=1e-5)

    def pretrain(self, users: Iterable[TrainingLog], rng: np.random.Generator) -> Self:
        """Learn from the outcomes of the given rows of many users."""
        logs = list(users)
        reviews, rows = pooled(logs)
        histories = histories_before(reviews, rows, longest=LONGEST_TRAINED_HISTORY)
        if not len(histories.target):
            raise ConfigError(f"{self.name}: the given users have no reviews to learn from")
        generator = generator_from(int(rng.integers(2**63)))
        network, scaling = self.start(None, histories, generator)
        order = rng.permutation(len(histories.length))
        recipe = self.pretraining
        last_of(self.training(network, histories, order, recipe, generator))
        return self.with_weights(
            network,
            scaling,
            logs,
            way="pooled",
            epochs=recipe.epochs,
            batch_size=recipe.batch_size,
            learning_rate=recipe.learning_rate,
        )


@dataclass(frozen=True)
class ReptilePretraining(NetworkAlgorithm):
    """A network that can be pretrained so that fits to new users are short.

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
    # epochs of `inner` are steps, not passes; epochs and batch_size of `outer` mean nothing
    inner: ClassVar[Recipe]
    outer: ClassVar[Recipe]

    def pretrain(self, users: Iterable[TrainingLog], rng: np.random.Generator) -> Self:
        """Learn where to start from on new users."""
        logs = list(users)
        read = [
            histories_before(reviews, rows, longest=LONGEST_TRAINED_HISTORY)
            for reviews, rows in logs
        ]
        taught = [number for number, histories in enumerate(read) if len(histories.target)]
        if not taught:
            raise ConfigError(f"{self.name}: the given users have no reviews to learn from")
        generator = generator_from(int(rng.integers(2**63)))
        network, _ = self.start(None, read[taught[0]], generator)
        scaling = scaling_of(network, [read[number] for number in taught])
        network.set_scaling(scaling)
        meta = list(network.parameters())
        adam, steps = Adam(meta, self.outer), self.outer_steps
        order: list[int] = []
        for step in range(steps):
            order = order or rng.permutation(taught).tolist()
            number = order.pop()
            gradients = self._reptile_update(network, read[number], rng, generator)
            adam.step(gradients, self.outer.learning_rate * warmed_cosine(step / steps))
        return self.with_weights(
            network,
            scaling,
            logs,
            way="reptile",
            outer_steps=steps,
            inner_steps=self.inner.epochs,
        )

    def _reptile_update(
        self,
        network: Network,
        histories: Histories,
        rng: np.random.Generator,
        generator: torch.Generator,
    ) -> list[torch.Tensor]:
        """Return the parameter changes after adapting to one user, with the sign reversed."""
        meta = [parameter.detach().clone() for parameter in network.parameters()]
        order = rng.permutation(len(histories.length))
        n_batches = -(-len(histories.target) // self.inner.batch_size)
        # Where there are more batches than steps, the first ones of the random order do.
        if n_batches > self.inner.epochs:
            order = order[: len(order) * self.inner.epochs // n_batches]
        recipe = replace(self.inner, epochs=max(1, self.inner.epochs // n_batches))
        last_of(self.training(network, histories, order, recipe, generator))
        with torch.no_grad():
            update = []
            for before, parameter in zip(meta, network.parameters(), strict=True):
                update.append(before - parameter)
                parameter.copy_(before)
        return update


def warmed_cosine(done: float) -> float:
    """Rise from 1e-4 to 1 in the first tenth, then fall to 0 along half a cosine."""
    if done < 0.1:
        return Ramps(1e-4, 0.1, 1.0)(done)
    return cosine((done - 0.1) / 0.9)
