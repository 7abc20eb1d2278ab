"""Networks trained on one user's reviews, from drawn weights or those learned from other users.

Training is deterministic and leaves no trace in the process. PyTorch's own optimisers load its
compiler when the first of them is made, which takes longer than training the network of one user;
AdamW is a few lines.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import ClassVar, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from srs_eval.algorithms.algorithm import FittingInSteps, Learned
from srs_eval.algorithms.neural.network import Network, NetworkModel, Sizes, network_of, one_thread
from srs_eval.algorithms.neural.recipes import RECIPES, Recipe, Recipes
from srs_eval.algorithms.options import Count, Positive
from srs_eval.algorithms.recurrent.sequences import MOST_EARLIER, Histories, histories_before
from srs_eval.algorithms.recurrent.weights import TrainingLog, Weights, finite, pooled, seen_in
from srs_eval.data.reviews import IntArray, Reviews
from srs_eval.errors import FitSkipped

# The largest loss of one review, as in the published trainer.
_LARGEST_LOSS = 100.0
_SMALLEST_DECAY = 1e-30
_EPSILON = 1e-8  # Of Adam


@dataclass(frozen=True)
class NetworkAlgorithm(FittingInSteps):
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
        _ = self.start  # which is refused here, where it cannot be used

    def sizes(self, *, whole_days: bool) -> Sizes:
        """Return the arguments that the network is built with: `hidden` and `curves`, if any."""
        return tuple(getattr(self, each) for each in ("hidden", "curves") if hasattr(self, each))

    @cached_property
    def start(self) -> Weights | None:
        """The weights that are learned from others; None: drawn ones."""
        sizes = [self.sizes(whole_days=whole_days) for whole_days in (True, False)]
        return Weights.of(self.name, sizes, self.weights)

    @property
    def pretrained(self) -> bool:
        """Whether it starts from weights that were learned from other users."""
        return self.start is not None

    @property
    def recipes(self) -> Recipes:
        """The recipes of its network."""
        return RECIPES[self.name]

    @property
    def recipe(self) -> Recipe:
        """The recipe for drawn or for learned weights, with the options in it."""
        names = ("epochs", "batch_size", "learning_rate")
        own = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return replace(self.recipes.learned if self.pretrained else self.recipes.drawn, **own)

    def fit_in_steps(
        self,
        reviews: Reviews,
        rows: IntArray,
        rng: np.random.Generator,
        recipe: Recipe | None = None,
    ) -> Iterator[NetworkModel]:
        """Train on the outcomes of `rows`, yielding the model as it stands after each epoch.

        Only the reviews before each of `rows` on its card are read; `rng` draws the first weights
        and the order of the batches. Raise `FitSkipped` if none of `rows` has an earlier review of
        its card (and at most 64 of them), or the weights to start from were learned from this user;
        raise `FitError` if the loss or a parameter stopped being a number.
        """
        recipe, weights = recipe or self.recipe, self.start
        if weights is not None:
            weights.refuse(reviews)
        who, advice = f"user {reviews.user}: {self.name}", f"below {recipe.learning_rate}"
        histories = histories_before(reviews, rows, longest=MOST_EARLIER)
        n_targets = len(histories.target)
        if not n_targets and weights is None:
            raise FitSkipped(
                f"{who} needs at least 1 training review with 1 to {MOST_EARLIER} "
                f"earlier reviews of its card, none of the {len(rows)} has"
            )
        generator = torch.Generator().manual_seed(int(rng.integers(2**63)))
        sizes = self.sizes(whole_days=reviews.whole_days)
        start = generator if weights is None else weights.parameters
        network = network_of(self.network, sizes, start)
        scaling = scaling_of(network, histories) if weights is None else weights.scaling
        network.scaling = scaling
        size = max(n_targets, 1) * recipe.batch_size ** (recipe.exponent - 1)
        losses: tuple[float, ...] = ()
        for loss in epochs(network, histories, recipe, rng, generator):
            losses += (loss / size,)
            parameters = finite(network.vector(), who, f"a learning_rate {advice}", loss)
            learned = Learned(training_loss=losses)
            yield NetworkModel(self.network, sizes, parameters, scaling, learned)

    def pretrain(self, users: Iterable[TrainingLog], rng: np.random.Generator) -> Self:
        """Learn from the outcomes of the given rows of many users, all pooled as if one user's."""
        logs, recipe = list(users), self.recipes.pretraining
        steps = replace(self, weights=None).fit_in_steps(*pooled(logs), rng, recipe)
        last = deque(steps, maxlen=1).pop()
        how = {"epochs": recipe.epochs, "learning_rate": recipe.learning_rate}
        learned = (last.sizes, last.parameters, last.scaling)
        return replace(self, weights=Weights(self.name, *learned, seen_in(logs), how))


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
    network: Network, histories: Histories, recipe: Recipe, rng: np.random.Generator
) -> list[TrainingBatch]:
    """Deal whole cards to batches at random, and look up what is to be learned from each."""
    reviews, rows, table = histories.reviews, histories.rows, network.table(histories.reviews)
    elapsed, weight = (
        torch.as_tensor(column, dtype=table.dtype)
        for column in (reviews.elapsed[rows], recipe.weights(len(rows)))
    )
    forgotten = torch.from_numpy(~reviews.recalled[rows])
    return [
        TrainingBatch(table[review], entry, elapsed[target], forgotten[target], weight[target])
        for dealt in histories.dealt(recipe.batch_size, rng)
        for review, target, entry in [map(torch.from_numpy, dealt)]
    ]


def epochs(
    network: Network,
    histories: Histories,
    recipe: Recipe,
    rng: np.random.Generator,
    generator: torch.Generator,
) -> Iterator[float]:
    """Train a network in place, by a step per batch, in an order drawn anew for each epoch.

    After each epoch, yield the sum of the losses just before the steps; NaN or infinity is the
    last. An epoch has a seed of its own for dropout, and gives PyTorch's generators back, so that
    what is done between two of them changes nothing in the training, nor the training anything
    there.
    """
    batches, step = training_batches(network, histories, recipe, rng), stepping(network, recipe)
    network.train()
    for epoch in range(recipe.epochs if batches else 1):
        total = 0.0
        with one_thread(), torch.random.fork_rng():
            torch.manual_seed((generator.initial_seed() + epoch) % 2**63)
            order = torch.randperm(len(batches), generator=generator).tolist()
            for number, batch in enumerate(map(batches.__getitem__, order), epoch * len(batches)):
                total += step(batch, number / (recipe.epochs * len(batches)))
                if not math.isfinite(total):
                    break
        yield total
        if not math.isfinite(total):
            return


def stepping(network: Network, recipe: Recipe) -> Callable[[TrainingBatch, float], float]:
    """Return a step of AdamW down the loss of a batch, after a share of all steps.

    Kingma & Ba (2015), https://doi.org/10.48550/arXiv.1412.6980, with the weight decay of
    Loshchilov & Hutter (2019), https://doi.org/10.48550/arXiv.1711.05101.
    """
    parameters: list[Tensor] = [*network.parameters()]
    centre = [parameter.detach().clone() for parameter in parameters]
    means, squares = ([torch.zeros_like(p) for p in parameters] for _ in range(2))
    first, second = recipe.betas
    numbers = count(1)

    def step(batch: TrainingBatch, done: float) -> float:
        loss = batch.loss(network) * float(len(batch.entry)) ** (recipe.exponent - 1)
        if recipe.prox:
            moved = [((p - c) ** 2).sum() for p, c in zip(parameters, centre, strict=True)]
            loss = loss + torch.stack(moved).sum() * recipe.prox
        # A parameter that no review of the batch needs has a gradient of 0, not none.
        gradients = [*torch.autograd.grad(loss, parameters, materialize_grads=True)]
        if recipe.clip < math.inf:
            length = float(torch.stack([(g * g).sum() for g in gradients]).sum().sqrt())
            share = min(1.0, recipe.clip / max(length, _EPSILON))
            gradients = [gradient * share for gradient in gradients]
        number, rate = next(numbers), recipe.pace(done)
        remaining, spread = 1 - rate * recipe.weight_decay, math.sqrt(1 - second**number)
        with torch.no_grad():
            moments = zip(parameters, gradients, means, squares, strict=True)
            for parameter, gradient, mean, square in moments:
                mean.lerp_(gradient, 1 - first)
                square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
                change = mean / (square.sqrt() / spread + _EPSILON)
                parameter.mul_(remaining).sub_(change.mul_(rate / (1 - first**number)))
        network.clip()
        return float(loss.detach())

    return step
