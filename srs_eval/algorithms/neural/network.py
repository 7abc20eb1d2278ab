"""Networks with a state after each review: parameters, inputs, and predictions.

A network reads the reviews of a card one after the other and has a *state* after each of them:
some numbers from which it predicts recall at any later time. Whatever the architecture, training
and predicting need no more than that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from srs_eval.algorithms.algorithm import Learned
from srs_eval.algorithms.history import CurveOnly
from srs_eval.algorithms.recurrent.sequences import histories_before
from srs_eval.data.reviews import FloatArray, IntArray, Reviews

Sizes = tuple[float, ...]


class Network(nn.Module):
    """A network with a state after each review."""

    # How many features, the first ones, are standardised by those of the training reviews
    n_scaled: ClassVar[int] = 0
    # What is subtracted from these, and what they are divided by; none are standardised if empty
    scaling: Sequence[float] = ()

    def features(self, reviews: Reviews) -> FloatArray:
        """Return what is read of each review, float64 [len(reviews), n_features]."""
        return np.column_stack([reviews.elapsed, reviews.rating])

    def table(self, reviews: Reviews) -> Tensor:
        """Tabulate what is read of each review, and a row of zeros for padding."""
        features = self.features(reviews)
        if self.scaling:
            features[:, : self.n_scaled] -= self.scaling[: self.n_scaled]
            features[:, : self.n_scaled] /= self.scaling[self.n_scaled :]
        precision = next(self.parameters()).dtype
        return torch.as_tensor(np.pad(features, ((0, 1), (0, 0))), dtype=precision)

    def forward(self, inputs: Tensor) -> Tensor:
        """State after each review of [n_steps, n_cards, features], zeros where a card is over."""
        raise NotImplementedError

    def decay(self, states: Tensor, elapsed: Tensor) -> Tensor:
        """Return minus the logarithm of recall some days, [...], after the review of a state."""
        raise NotImplementedError

    def read(self, inputs: Tensor, entry: Tensor) -> Tensor:
        """State after some of the ``n_steps * n_cards`` entries of the inputs, step by step."""
        states: Tensor = self(inputs)
        return states.flatten(0, 1)[entry]

    def draw(self, generator: torch.Generator) -> None:
        """Draw all parameters as PyTorch would, from a generator of our own."""
        for module in self.modules():
            if isinstance(module, nn.LayerNorm):
                module.reset_parameters()
            elif isinstance(module, nn.Linear | nn.RNNBase):
                width = module.in_features if isinstance(module, nn.Linear) else module.hidden_size
                bound = 1 / math.sqrt(width)
                for parameter in module.parameters():
                    nn.init.uniform_(parameter, -bound, bound, generator=generator)

    def clip(self) -> None:
        """Move parameters back into their bounds, where they have any; after each step."""

    def vector(self) -> FloatArray:
        """All parameters in one row: tensors as they were defined, matrices row by row."""
        values: FloatArray = nn.utils.parameters_to_vector(self.parameters()).detach().numpy()
        return values


def network_of(
    kind: type[Network],
    sizes: Sizes,
    start: Sequence[float] | torch.Generator,
    precision: torch.dtype = torch.float32,
) -> Network:
    """Build a network with parameters in the order of `vector`, or those drawn by a generator."""
    with torch.random.fork_rng(devices=[]):
        network = kind(*sizes).to(precision)
    if isinstance(start, torch.Generator):
        network.draw(start)
    else:
        nn.utils.vector_to_parameters(torch.tensor(start, dtype=precision), network.parameters())
    return network


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread: small networks gain nothing from more, and sums keep their order."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


_ENTRIES_AT_A_TIME = 2**17
_SMALLEST_P = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True)
class NetworkModel(CurveOnly):
    """A trained network. It predicts in double precision, so that batches do not matter."""

    network: type[Network]
    sizes: Sizes  # What it is built with
    parameters: tuple[float, ...]  # As in `Network.vector`
    scaling: tuple[float, ...] = ()  # As in `Network`
    learned: Learned = field(default_factory=Learned, compare=False)  # How it was trained

    def predict_at(self, reviews: Reviews, rows: IntArray, elapsed: FloatArray) -> FloatArray:
        """Predict recall at other elapsed times, the history staying as it is."""
        network = network_of(self.network, self.sizes, self.parameters, torch.float64).eval()
        network.scaling = self.scaling
        table, days = network.table(reviews), torch.as_tensor(np.asarray(elapsed, np.float64))
        with torch.no_grad(), one_thread():
            # At a card's first review, the state after a row of zeros
            states = network.read(table[None, -1:], torch.tensor([0])).repeat(len(rows), 1)
            for batch in histories_before(reviews, rows).alike(_ENTRIES_AT_A_TIME):
                review, target, entry = map(torch.from_numpy, batch)
                states[target] = network.read(table[review], entry)
            p: FloatArray = np.exp(-network.decay(states[:, None], days).numpy())
        return np.clip(p, _SMALLEST_P, 1 - _SMALLEST_P)
