"""Networks trained on one user's reviews, from drawn weights or those learned from other users.

Training is deterministic and leaves no trace in the process. PyTorch's own optimisers load its
compiler when the first of them is made, which takes longer than training the network of one user;
AdamW is a few lines.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from srs_eval.algorithms.algorithm import Algorithm, Learned
from srs_eval.algorithms.neural.network import (
    Network,
    NetworkModel,
    Sizes,
    feature_table,
    network_of,
    one_thread,
)
from srs_eval.algorithms.neural.recipes import RECIPES, Recipe, Recipes
from srs_eval.algorithms.neural.sequences import CardBatch, Histories, histories_before
from srs_eval.algorithms.options import Count, Positive
from srs_eval.algorithms.recurrent.weights import TrainingLog, Weights, pooled, weights_for
from srs_eval.data.reviews import FloatArray, IntArray, Reviews
from srs_eval.errors import ConfigError, FitError, FitSkipped

LONGEST_TRAINED_HISTORY = 64
# The largest loss of one review, as in the published trainer.
_LARGEST_LOSS = 100.0
_SMALLEST_DECAY = 1e-30
_EPSILON = 1e-8  # Of Adam


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

    epochs: Count | None = None
    batch_size: Count | None = None
    learning_rate: Positive | None = None
    weights: str | Path | Weights | None = None
    name: ClassVar[str]
    network: ClassVar[type[Network]]

    def __post_init__(self) -> None:
        self.start_weights()

    def sizes(self, *, whole_days: bool) -> Sizes:
        """Return the arguments that the network is built with: `hidden`, if it is an option."""
        hidden: int | None = getattr(self, "hidden", None)
        return () if hidden is None else (hidden,)

    def start_weights(self) -> Weights | None:
        """Weights to start from; None: drawn ones."""
        sizes = [self.sizes(whole_days=whole_days) for whole_days in (True, False)]
        return weights_for(self.name, sizes, self.weights)

    @property
    def pretrained(self) -> bool:
        """Whether it starts from weights that were learned from other users."""
        return self.weights is not None

    @property
    def recipes(self) -> Recipes:
        """The recipes of its network."""
        return RECIPES[self.name]

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
        generator = torch.Generator().manual_seed(int(rng.integers(2**63)))
        sizes = self.sizes(whole_days=reviews.whole_days)
        start = generator if weights is None else weights.parameters
        network = network_of(self.network, sizes, start)
        scaling = scaling_of(network, histories) if weights is None else weights.scaling
        size = max(n_targets, 1) * recipe.batch_size ** (recipe.exponent - 1)
        losses: list[float] = []
        for loss in epochs(network, scaling, histories, recipe, rng, generator):
            parameters = network.vector()
            if not (math.isfinite(loss) and np.isfinite(parameters).all()):
                raise FitError(
                    f"user {reviews.user}: {self.name} diverged on {n_targets} training reviews: "
                    f"try a learning_rate below {recipe.learning_rate}"
                )
            losses.append(loss / size)
            learned = Learned(training_loss=tuple(losses))
            yield NetworkModel(self.network, sizes, tuple(parameters.tolist()), scaling, learned)

    def pretrain(self, users: Iterable[TrainingLog], rng: np.random.Generator) -> Self:
        """Learn from the outcomes of the given rows of many users, all pooled as if one user's."""
        logs, recipe = list(users), self.recipes.pretraining
        histories = histories_before(*pooled(logs), longest=LONGEST_TRAINED_HISTORY)
        if not len(histories.target):
            raise ConfigError(f"{self.name}: the given users have no reviews to learn from")
        generator = torch.Generator().manual_seed(int(rng.integers(2**63)))
        sizes = self.sizes(whole_days=histories.reviews.whole_days)
        network = network_of(self.network, sizes, generator)
        scaling = scaling_of(network, histories)
        deque(epochs(network, scaling, histories, recipe, rng, generator), maxlen=0)
        how = {"epochs": recipe.epochs, "learning_rate": recipe.learning_rate}
        weights = Weights.learned(self.name, sizes, network.vector(), logs, scaling, settings=how)
        return replace(self, weights=weights)


def scaling_of(network: Network, histories: Histories) -> tuple[float, ...]:
    """Means and standard deviations of what is read and scaled; 1 in place of 0."""
    columns = network.features(histories.reviews)[histories.review, : network.n_scaled]
    if not len(columns):
        return ()
    spread = columns.std(axis=0)
    return (*columns.mean(axis=0).tolist(), *np.where(spread > 0, spread, 1.0).tolist())


class TrainingBatch(NamedTuple):
    """A few cards, and what to predict after which of their reviews."""

    inputs: Tensor  # [n_steps, n_cards, features]: What the network reads
    entry: Tensor  # [n_targets]: Which of the ``n_steps * n_cards`` states predicts each target
    elapsed: Tensor  # [n_targets]: Days since the card's previous review
    forgotten: Tensor  # [n_targets]: Whether the rating was Again
    weight: Tensor  # [n_targets]: What the loss of each target is multiplied by

    def loss(self, network: Network) -> Tensor:
        """Sum the weighted log losses of the targets."""
        decay = network.decay(network.read(self.inputs, self.entry), self.elapsed)
        return (log_loss(decay, self.forgotten) * self.weight).sum()


def log_loss(decay: Tensor, forgotten: Tensor) -> Tensor:
    """Log loss of each review, at most 100, computed from minus the logarithm of recall.

    Probabilities in single precision reach 0 and 1, where their gradient is lost; the
    logarithm does not.
    """
    decay = decay.clamp(_SMALLEST_DECAY, _LARGEST_LOSS)
    return torch.where(forgotten, -torch.log(-torch.expm1(-decay)), decay)


def training_batches(
    network: Network,
    scaling: Sequence[float],
    histories: Histories,
    cards: Iterable[CardBatch],
    weight: FloatArray,
) -> list[TrainingBatch]:
    """Make a batch of each group of cards; `weight` is that of each row."""
    reviews, rows = histories.reviews, histories.rows
    precision = next(network.parameters()).dtype
    table = feature_table(network, reviews, scaling, precision)
    elapsed, weights = (
        torch.as_tensor(column, dtype=precision) for column in (reviews.elapsed[rows], weight)
    )
    forgotten = torch.from_numpy(~reviews.recalled[rows])
    return [
        TrainingBatch(table[review], entry, elapsed[target], forgotten[target], weights[target])
        for review, target, entry in (map(torch.from_numpy, batch) for batch in cards)
    ]


def epochs(
    network: Network,
    scaling: Sequence[float],
    histories: Histories,
    recipe: Recipe,
    rng: np.random.Generator,
    generator: torch.Generator,
) -> Iterator[float]:
    """Train a network in place, by one step of AdamW per batch.

    Batches are used in an order drawn anew for each epoch. After each, yield the sum of its losses,
    each taken just before its step; NaN or infinity is the last.

    Each epoch is on one thread, with a seed of its own for dropout: PyTorch's global generators are
    given back after it, so that what is done between two epochs changes nothing in the training,
    nor the training anything there.
    """
    dealt = histories.about(recipe.batch_size, rng.permutation(len(histories.length)))
    weight = recipe.weights(len(histories.rows))
    batches = training_batches(network, scaling, histories, dealt, weight)
    parameters = [*network.parameters()]
    centre = [parameter.detach().clone() for parameter in parameters]
    adam = AdamW(parameters, recipe)
    network.train()
    for epoch in range(recipe.epochs if batches else 1):
        total = 0.0
        with one_thread(), torch.random.fork_rng():
            torch.manual_seed((generator.initial_seed() + epoch) % 2**63)
            order = torch.randperm(len(batches), generator=generator).tolist()
            for step, number in enumerate(order, start=epoch * len(batches)):
                batch = batches[number]
                loss = batch.loss(network) * float(len(batch.entry)) ** (recipe.exponent - 1)
                if recipe.prox:
                    moved = [((p - c) ** 2).sum() for p, c in zip(parameters, centre, strict=True)]
                    loss = loss + torch.stack(moved).sum() * recipe.prox
                # A parameter that no review of the batch needs has a gradient of 0, not none.
                gradients = torch.autograd.grad(loss, parameters, materialize_grads=True)
                adam.step(gradients, recipe.pace(step / (recipe.epochs * len(batches))))
                network.clip()
                total += float(loss.detach())
                if not math.isfinite(total):
                    break
        yield total
        if not math.isfinite(total):
            return


class AdamW:
    """The optimiser of Kingma & Ba (2015), with the weight decay of Loshchilov & Hutter (2019).

    It changes the parameters in place. Betas, weight decay and the longest gradient are those of
    the recipe. See https://doi.org/10.48550/arXiv.1412.6980 and
    https://doi.org/10.48550/arXiv.1711.05101.
    """

    def __init__(self, parameters: Sequence[Tensor], recipe: Recipe) -> None:
        self._parameters, self._recipe, self._steps = parameters, recipe, 0
        self._mean, self._square = ([torch.zeros_like(p) for p in parameters] for _ in range(2))

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor], learning_rate: float) -> None:
        """Move each parameter by about `learning_rate` against its gradient."""
        first, second = self._recipe.betas
        self._steps += 1
        pace = learning_rate / (1 - first**self._steps)
        spread = math.sqrt(1 - second**self._steps)
        decay = 1 - learning_rate * self._recipe.weight_decay
        if self._recipe.clip < math.inf:
            length = float(torch.stack([(g * g).sum() for g in gradients]).sum().sqrt())
            share = min(1.0, self._recipe.clip / max(length, _EPSILON))
            gradients = [gradient * share for gradient in gradients]
        for parameter, gradient, mean, square in zip(
            self._parameters, gradients, self._mean, self._square, strict=True
        ):
            mean.lerp_(gradient, 1 - first)
            square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
            parameter.mul_(decay).sub_((mean / (square.sqrt() / spread + _EPSILON)).mul_(pace))
