"""Networks with a state after each review: parameters, inputs, loss, and predictions.

A network reads the reviews of a card one after the other and has a *state* after each of them:
some numbers from which it predicts recall at any later time. Whatever the architecture, training
and predicting need no more than that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from srs_eval.algorithms.algorithm import Learned
from srs_eval.algorithms.history import CurveOnly
from srs_eval.algorithms.neural.sequences import (
    Histories,
    batch_of,
    groups_of_entries,
    histories_before,
)
from srs_eval.algorithms.neural.training import one_thread
from srs_eval.data.reviews import FloatArray, IntArray, Reviews

Sizes = tuple[float, ...]

# The largest loss of one review, as in the published trainer.
_LARGEST_LOSS = 100.0
_SMALLEST_DECAY = 1e-30


class Network(nn.Module):
    """A network with a state after each review; its parameters are set by `draw` or `load`."""

    # How many features, the first ones, are moved and scaled by `set_scaling`
    n_scaled: ClassVar[int] = 0
    centre: Tensor
    spread: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("centre", torch.zeros(self.n_scaled))
        self.register_buffer("spread", torch.ones(self.n_scaled))

    def features(self, reviews: Reviews) -> FloatArray:
        """Return what is read of each review, float64 [len(reviews), n_features].

        By default days since the last, and the rating.
        """
        return np.column_stack([reviews.elapsed, reviews.rating])

    def forward(self, inputs: Tensor) -> Tensor:
        """Compute the state after each review, [n_steps, n_cards, numbers of the state].

        Of the inputs [n_steps, n_cards, features], rows of zeros stand where a card is over.
        """
        raise NotImplementedError

    def decay(self, states: Tensor, elapsed: Tensor) -> Tensor:
        """Return minus the logarithm of recall some days after the review that left a state.

        The days are broadcast against the states [..., numbers of the state].
        """
        raise NotImplementedError

    def read(self, inputs: Tensor, entry: Tensor) -> Tensor:
        """State after the review of each entry, [len(entry), numbers of the state].

        `entry`, int64, says which of the ``n_steps * n_cards`` entries of the inputs, step by step.
        """
        states: Tensor = self(inputs)
        return states.flatten(0, 1)[entry]

    def draw(self, generator: torch.Generator) -> None:
        """Draw all parameters as PyTorch would, from a generator of our own."""
        with torch.no_grad():
            for module in self.modules():
                if isinstance(module, nn.LayerNorm):
                    module.reset_parameters()
                    continue
                if isinstance(module, nn.Linear):
                    bound = 1 / math.sqrt(module.in_features)
                elif isinstance(module, nn.RNNBase):
                    bound = 1 / math.sqrt(module.hidden_size)
                else:
                    continue
                for parameter in module.parameters():
                    parameter.uniform_(-bound, bound, generator=generator)

    def clip(self) -> None:
        """Move parameters back into their bounds, where they have any; after each step."""

    def load(self, values: FloatArray) -> None:
        """Set all parameters, in the order of `vector`."""
        flat = torch.as_tensor(values, dtype=next(self.parameters()).dtype)
        nn.utils.vector_to_parameters(flat, self.parameters())

    def vector(self) -> FloatArray:
        """All parameters in one row: tensors as they were defined, matrices row by row."""
        values: FloatArray = nn.utils.parameters_to_vector(self.parameters()).detach().numpy()
        return values

    def set_scaling(self, scaling: Sequence[float]) -> None:
        """Set what is subtracted from the scaled features, and what they are divided by."""
        values = torch.tensor(scaling, dtype=torch.float64)
        self.centre.copy_(values[: self.n_scaled])
        self.spread.copy_(values[self.n_scaled :])

    def scaled(self, inputs: Tensor) -> Tensor:
        """Apply the scaling to inputs."""
        k = self.n_scaled
        return torch.cat([(inputs[..., :k] - self.centre) / self.spread, inputs[..., k:]], dim=-1)


def empty_network(network: type[Network], sizes: Sizes, scaling: Sequence[float] = ()) -> Network:
    """Build a network whose parameters are not set; PyTorch's own generator is not touched."""
    with torch.device("meta"):
        module = network(*sizes)
    module.to_empty(device="cpu")
    module.set_scaling(scaling or (0.0,) * network.n_scaled + (1.0,) * network.n_scaled)
    return module


def scaling_of(network: Network, histories: Histories) -> tuple[float, ...]:
    """Means and standard deviations of what is read; 1 in place of 0."""
    columns = network.features(histories.reviews)[histories.review, : network.n_scaled]
    if not len(columns):
        return ()
    spread = columns.std(axis=0)
    scaling = np.concatenate([columns.mean(axis=0), np.where(spread > 0, spread, 1.0)])
    return tuple(scaling.tolist())


class TrainingBatch(NamedTuple):
    """A few cards, and what to predict after which of their reviews."""

    inputs: Tensor  # [n_steps, n_cards, features]: What the network reads
    entry: Tensor  # [n_targets]: Which of the ``n_steps * n_cards`` states predicts each target
    elapsed: Tensor  # [n_targets]: Days since the card's previous review
    forgotten: Tensor  # [n_targets]: Whether the rating was Again
    weight: Tensor  # [n_targets]: What the loss of each target is multiplied by


def summed_loss(network: Network, batch: TrainingBatch) -> Tensor:
    """Sum the weighted log losses of a batch's targets."""
    states = network.read(batch.inputs, batch.entry)
    losses = log_loss(network.decay(states, batch.elapsed), batch.forgotten)
    return (losses * batch.weight).sum()


def log_loss(decay: Tensor, forgotten: Tensor) -> Tensor:
    """Log loss of each review, at most 100, computed from the logarithm of recall.

    Probabilities in single precision reach 0 and 1, where their gradient is lost; the
    logarithm does not.
    """
    # p = exp(-decay)
    decay = decay.clamp(_SMALLEST_DECAY, _LARGEST_LOSS)
    return torch.where(forgotten, -torch.log(-torch.expm1(-decay)), decay)


def training_batches(
    network: Network,
    histories: Histories,
    groups: Sequence[IntArray],
    weight: FloatArray,
    precision: torch.dtype = torch.float32,
) -> list[TrainingBatch]:
    """Make a batch of each group of cards; `weight` is that of each row."""
    reviews, rows = histories.reviews, histories.rows
    table = feature_table(network, reviews, precision)
    elapsed, weights = (
        torch.as_tensor(column, dtype=precision) for column in (reviews.elapsed[rows], weight)
    )
    forgotten = torch.from_numpy(~reviews.recalled[rows])
    batches = []
    for cards in groups:
        review, target, entry = map(torch.from_numpy, batch_of(histories, cards))
        batches.append(
            TrainingBatch(table[review], entry, elapsed[target], forgotten[target], weights[target])
        )
    return batches


def feature_table(network: Network, reviews: Reviews, precision: torch.dtype) -> Tensor:
    """Tabulate what the network reads of each review, and a row of zeros for padding."""
    features = network.features(reviews)
    padded = np.concatenate([features, np.zeros((1, features.shape[1]))])
    return torch.as_tensor(padded, dtype=precision)


def one_hot(rating: IntArray) -> FloatArray:
    """Write ratings as four 0/1 numbers, [len(rating), 4]."""
    columns: FloatArray = (rating[:, None] == np.arange(1, 5)).astype(np.float64)
    return columns


_ENTRIES_AT_A_TIME = 2**17
_SMALLEST_P = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True)
class NetworkModel(CurveOnly):
    """A trained network. It predicts in double precision, so that batches do not matter."""

    network: type[Network]
    sizes: Sizes  # What it is built with
    # Tensors in the order of the network's definition, matrices row by row
    parameters: tuple[float, ...]
    scaling: tuple[float, ...] = ()  # As in `Network.set_scaling`; none if empty
    learned: Learned = field(default_factory=Learned, compare=False)  # How it was trained

    def predict_at(self, reviews: Reviews, rows: IntArray, elapsed: FloatArray) -> FloatArray:
        """Predict recall at other elapsed times, the history staying as it is."""
        network = _network_of(self)
        days = torch.as_tensor(np.asarray(elapsed, np.float64))
        with torch.no_grad(), one_thread():
            decay = network.decay(_states(network, reviews, rows)[:, None], days)
        p: FloatArray = np.exp(-decay.numpy())
        return np.clip(p, _SMALLEST_P, 1 - _SMALLEST_P)


def _states(network: Network, reviews: Reviews, rows: IntArray) -> Tensor:
    """State just before each of `rows`; at a card's first review, that after a row of zeros."""
    features = feature_table(network, reviews, torch.float64)
    histories = histories_before(reviews, rows)
    nothing = torch.zeros(1, 1, features.shape[1], dtype=torch.float64)
    states = network.read(nothing, torch.zeros(1, dtype=torch.int64)).repeat(len(rows), 1)
    for cards in groups_of_entries(histories, per_group=_ENTRIES_AT_A_TIME):
        review, target, entry = map(torch.from_numpy, batch_of(histories, cards))
        states[target] = network.read(features[review], entry)
    return states


@lru_cache(maxsize=2)
def _network_of(model: NetworkModel) -> Network:
    """Build the network of a model, for predictions; one model is asked again and again."""
    network = empty_network(model.network, model.sizes, model.scaling).double().eval()
    network.load(np.array(model.parameters))
    return network
