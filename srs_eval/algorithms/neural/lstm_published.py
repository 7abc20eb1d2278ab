"""The 489-parameter LSTM of the first edition of the public benchmark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from srs_eval.algorithms.neural.fitting import NetworkAlgorithm
from srs_eval.algorithms.neural.lstm_published_equations import (
    FORGETTING_RATE,
    LARGEST_LOG_STABILITY,
    packed_groups,
    train_compiled,
)
from srs_eval.algorithms.neural.network import Network, Sizes, one_hot
from srs_eval.algorithms.neural.sequences import Histories, groups_of_targets
from srs_eval.algorithms.neural.training import Recipe
from srs_eval.nouns import FloatArray, IntArray, Reviews

# Larger networks take more time to compile than most users' training takes.
_MOST_COMPILED = 8


class LstmNetwork(Network):
    """One LSTM layer and a linear one that gives the logarithm of the stability."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.rnn = nn.LSTM(5, hidden)
        self.fc = nn.Linear(hidden, 1)

    def features(self, reviews: Reviews) -> FloatArray:
        """Days since the card's review before, and the rating as four 0/1 numbers."""
        return np.column_stack([reviews.elapsed, one_hot(reviews.rating)])

    def forward(self, inputs: Tensor) -> Tensor:
        """Logarithm of the stability after each review, [n_steps, n_cards, 1]."""
        states, _ = self.rnn(inputs)
        return self._log_stability(states)

    def unread(self) -> Tensor:
        """Logarithm of the stability before any review, [1]."""
        return self._log_stability(torch.zeros_like(self.fc.weight[0]))

    def decay(self, states: Tensor, elapsed: Tensor) -> Tensor:
        """Exponential forgetting."""
        return FORGETTING_RATE * elapsed * torch.exp(-states[..., 0])

    def _log_stability(self, states: Tensor) -> Tensor:
        limit = LARGEST_LOG_STABILITY
        values: Tensor = self.fc(states).clamp(-limit, limit)
        return values


@dataclass(frozen=True)
class LstmPublished(NetworkAlgorithm):
    r"""A long short-term memory that reads a card's history and gives its stability.

    For each earlier review of the card the network reads the days since the review before it
    (0 at the first, not scaled) and the rating as four 0/1 numbers. From its state after the
    last of them, :math:`h`, it predicts recall after :math:`t` days as

    .. math:: p = 0.9^{t / S}, \qquad S = \exp(w \cdot h + b).

    With 8 hidden units it has 489 parameters: 4·8·(5 + 8) weights and two bias vectors of 4·8
    in the LSTM, 8 weights and a bias in the last layer. They are drawn from
    U(-1/√8, 1/√8) and trained on the user's own reviews alone.

    Training follows the published recipe (Adam, learning rate falling along a cosine, summed
    log loss, last epoch kept; targets with more than 64 earlier reviews are left out) except
    for what is in a batch. There, a batch is 512 reviews with histories of like length, each
    with its own copy of its card's history. Here, a card is read once and predicts all its
    reviews on the way, so a batch is as many whole cards as have about 512 reviews to predict:
    the same gradients, grouped by card. As there, batches are made once, and used in an order
    drawn anew for each epoch. Cards are dealt to them at random: batches of cards of like
    length would need less padding, but such cards have like outcomes too, and batches of them
    train worse.

    With up to 8 hidden units and on a CPU, loss and gradient are compiled (see
    `lstm_published_equations`), which takes some seconds once per process; otherwise they are
    PyTorch's. Both are the same but for rounding.

    A user with 500 training reviews gets 5 steps in all, which is hardly a training: it is here
    to compare with the public number. Use ``algo=lstm`` otherwise. No published row is a mean
    over users: in 2024, over 19,854 users weighted by their reviews, it had 0.3881 nats and
    RMSE 0.3119, and 0.5543 nats when users weigh by the logarithm of their reviews; seed and
    initialisation of that run are not known.

    Parameters
    ----------
    hidden : int
        Number of hidden units.

    Other options: see `NetworkAlgorithm`.

    References
    ----------
    Hochreiter, S., & Schmidhuber, J. (1997). Long short-term memory. Neural Computation, 9(8),
    1735-1780. https://doi.org/10.1162/neco.1997.9.8.1735
    """

    hidden: int = 8
    epochs: int | None = 5
    batch_size: int | None = 512
    learning_rate: float | None = 0.04
    name: ClassVar[str] = "lstm_published"
    network: ClassVar[type[Network]] = LstmNetwork
    recipe: ClassVar[Recipe] = Recipe(5, 512, 0.04)

    def sizes(self, *, whole_days: bool) -> Sizes:
        """Hidden units."""
        return (self.hidden,)

    def training(
        self,
        network: Network,
        histories: Histories,
        order: IntArray,
        recipe: Recipe,
        generator: torch.Generator,
    ) -> Iterator[float]:
        """Train a network in place, yielding the loss of each epoch."""
        if self.hidden > _MOST_COMPILED or self.device != "cpu":
            return NetworkAlgorithm.training(self, network, histories, order, recipe, generator)
        groups = groups_of_targets(histories, order, per_group=recipe.batch_size)
        packed = packed_groups(histories, groups)
        return train_compiled(network, packed, recipe, generator)
