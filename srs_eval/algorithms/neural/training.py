"""Training a small network on one user: deterministic, and without a trace in the process.

PyTorch's own optimisers load its compiler when the first of them is made, which takes longer
than training the network of one user; Adam is a few lines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import Tensor

Batch = TypeVar("Batch")

_DECAY_MEAN = 0.9
_DECAY_SQUARE = 0.999
_TINY = 1e-8


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
    """Make a source of random numbers of its own, leaving PyTorch's global one alone."""
    generator = torch.Generator()
    generator.manual_seed(seed)
    return generator


def minimise(
    parameters: Sequence[Tensor],
    batches: Sequence[Batch],
    loss: Callable[[Batch], Tensor],
    *,
    epochs: int,
    learning_rate: float,
    generator: torch.Generator,
) -> float:
    """Take one step of Adam per batch, in an order of batches drawn anew for each epoch.

    The learning rate falls to 0 along half a cosine over all steps.

    Parameters
    ----------
    parameters : sequence of Tensor
        Leaves of the loss's graph, changed in place.
    batches : sequence
        What `loss` takes.
    loss : callable
        Loss of one batch; its scale hardly matters, as Adam divides it out.
    epochs : int
        How often each batch is used.
    learning_rate : float
        Of the first step.
    generator : torch.Generator
        Draws the order of the batches.

    Returns
    -------
    float
        Sum of the losses of the last epoch, each taken just before its step; NaN or infinity
        ends the training early.

    References
    ----------
    Kingma, D. P., & Ba, J. (2015). Adam: A method for stochastic optimization. ICLR.
    https://doi.org/10.48550/arXiv.1412.6980
    """
    adam = Adam(parameters)
    n_steps = epochs * len(batches)
    total = math.nan
    for epoch in range(epochs):
        total = 0.0
        for turn, number in enumerate(torch.randperm(len(batches), generator=generator).tolist()):
            value = loss(batches[number])
            gradients = torch.autograd.grad(value, parameters)
            done = (epoch * len(batches) + turn) / n_steps
            adam.step(gradients, learning_rate * (1 + math.cos(math.pi * done)) / 2)
            total += float(value.detach())
            if not math.isfinite(total):
                return total
    return total


class Adam:
    """The optimiser of Kingma & Ba (2015), with the constants they propose.

    Parameters
    ----------
    parameters : sequence of Tensor
        What to change, in place.
    """

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self._parameters = parameters
        self._mean = [torch.zeros_like(parameter) for parameter in parameters]
        self._square = [torch.zeros_like(parameter) for parameter in parameters]
        self._steps = 0

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor], learning_rate: float) -> None:
        """Move each parameter by about `learning_rate` against its gradient."""
        self._steps += 1
        pace = learning_rate / (1 - _DECAY_MEAN**self._steps)
        spread = math.sqrt(1 - _DECAY_SQUARE**self._steps)
        for parameter, gradient, mean, square in zip(
            self._parameters, gradients, self._mean, self._square, strict=True
        ):
            mean.lerp_(gradient, 1 - _DECAY_MEAN)
            square.mul_(_DECAY_SQUARE).addcmul_(gradient, gradient, value=1 - _DECAY_SQUARE)
            parameter.sub_((mean / (square.sqrt() / spread + _TINY)).mul_(pace))
