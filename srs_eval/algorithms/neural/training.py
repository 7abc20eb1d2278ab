"""Training a small network on one user: deterministic, and without a trace in the process.

PyTorch's own optimisers load its compiler when the first of them is made, which takes longer
than training the network of one user; Adam is a few lines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

Batch = TypeVar("Batch")
# From the share of all steps that are done to the share of the learning rate of the next one.
Schedule = Callable[[float], float]

_TINY = 1e-8


def cosine(done: float) -> float:
    """Fall from 1 to 0 along half a cosine."""
    return (1 + math.cos(math.pi * done)) / 2


@dataclass(frozen=True, slots=True)
class Ramps:
    """Straight from one share of the learning rate to 1, and from there straight to another."""

    start: float
    turn: float  # Share of the steps after which it is 1
    end: float

    def __call__(self, done: float) -> float:
        """Share of the learning rate."""
        if done < self.turn:
            return self.start + (1 - self.start) * done / self.turn
        return 1 + (self.end - 1) * (done - self.turn) / (1 - self.turn)


@dataclass(frozen=True, slots=True)
class Recipe:
    """Options of AdamW over batches of reviews, and weights of these."""

    epochs: int  # How often each training review is used
    batch_size: int  # About how many training reviews make a step
    learning_rate: float  # What `schedule` takes its shares of
    schedule: Schedule = cosine
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
        """Learning rate of the next step."""
        return self.learning_rate * self.schedule(done) * math.pow(16000, 1 - self.exponent)


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread: small networks gain nothing from more, and sums keep their order."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def generator_from(seed: int) -> torch.Generator:
    """Make a source of random numbers, leaving PyTorch's global one alone."""
    generator = torch.Generator()
    generator.manual_seed(seed)
    return generator


def epochs(
    parameters: Sequence[Tensor],
    batches: Sequence[Batch],
    loss: Callable[[Batch], Tensor],
    recipe: Recipe,
    generator: torch.Generator,
    after_step: Callable[[], None] = lambda: None,
) -> Iterator[float]:
    """Run one step of Adam per batch, in an order of batches drawn anew for each epoch.

    After each epoch, yield the sum of its losses, each taken just before its step; NaN or infinity
    is the last. `parameters` are leaves of the graph of `loss`, changed in place. `after_step` is
    called after each step, to move parameters into their bounds.

    Each epoch is on one thread, with a seed of its own for dropout: PyTorch's global generators are
    given back after it, so that what is done between two epochs changes nothing in the training,
    nor the training anything there.
    """
    adam = Adam(parameters, recipe)
    for epoch in range(recipe.epochs):
        with one_thread(), torch.random.fork_rng():
            torch.manual_seed((generator.initial_seed() + epoch) % 2**63)
            total = 0.0
            order = torch.randperm(len(batches), generator=generator).tolist()
            for step, number in enumerate(order, start=epoch * len(batches)):
                value = loss(batches[number])
                # A parameter that no review of the batch needs has a gradient of 0, not none.
                gradients = torch.autograd.grad(value, parameters, materialize_grads=True)
                adam.step(gradients, recipe.pace(step / (recipe.epochs * len(batches))))
                after_step()
                total += float(value.detach())
                if not math.isfinite(total):
                    break
        yield total
        if not math.isfinite(total):
            return


class Adam:
    """The optimiser of Kingma & Ba (2015), with the weight decay of Loshchilov & Hutter (2019).

    It changes the parameters in place. Betas, weight decay and the longest gradient are those of
    the recipe. See Kingma, D. P., & Ba, J. (2015). Adam: A method for stochastic optimization.
    ICLR. https://doi.org/10.48550/arXiv.1412.6980, and Loshchilov, I., & Hutter, F. (2019).
    Decoupled weight decay regularization. ICLR. https://doi.org/10.48550/arXiv.1711.05101
    """

    def __init__(self, parameters: Sequence[Tensor], recipe: Recipe) -> None:
        self._parameters = parameters
        self._recipe = recipe
        self._mean = [torch.zeros_like(parameter) for parameter in parameters]
        self._square = [torch.zeros_like(parameter) for parameter in parameters]
        self._steps = 0

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
            share = min(1.0, self._recipe.clip / max(length, _TINY))
            gradients = [gradient * share for gradient in gradients]
        for parameter, gradient, mean, square in zip(
            self._parameters, gradients, self._mean, self._square, strict=True
        ):
            mean.lerp_(gradient, 1 - first)
            square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
            parameter.mul_(decay).sub_((mean / (square.sqrt() / spread + _TINY)).mul_(pace))
