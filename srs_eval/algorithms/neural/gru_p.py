"""A GRU that gives the probability itself, having read the time it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from srs_eval.algorithms.neural.gru import Gru, GruNetwork
from srs_eval.algorithms.neural.network import Network
from srs_eval.algorithms.neural.training import Recipe


class GruPNetwork(GruNetwork):
    """One GRU layer over pairs of a rating and the days that follow it.

    Its state after a review is what it had read up to the review's rating, and that rating:
    the days that follow are asked for.
    """

    def forward(self, inputs: Tensor) -> Tensor:
        """Hidden state before the rating of each review, and the rating, [..., hidden + 1]."""
        days, rating = inputs[..., :1], inputs[..., 1:]
        start = inputs.new_zeros(1, inputs.shape[1], self.rnn.hidden_size)
        hidden = start
        if len(inputs) > 1:
            read, _ = self.rnn(torch.cat([days[1:], rating[:-1]], dim=-1))
            hidden = torch.cat([start, read])
        return torch.cat([hidden, rating], dim=-1)

    def decay(self, states: Tensor, elapsed: Tensor) -> Tensor:
        """Return minus the logarithm of the probability after reading the days."""
        shape = np.broadcast_shapes(states.shape[:-1], elapsed.shape)
        states = states.expand(*shape, states.shape[-1]).reshape(-1, states.shape[-1])
        last = torch.stack([elapsed.expand(shape).reshape(-1), states[:, -1]], dim=-1)
        _, hidden = self.rnn(last[None], states[None, :, :-1].contiguous())
        return nn.functional.softplus(-self.fc(hidden[0])[:, 0]).reshape(shape)


@dataclass(frozen=True)
class GruP(Gru):
    r"""A gated recurrent unit that gives the probability of recall, without a stability.

    The network reads each earlier review of the card as its rating, 1 to 4, and the days from it
    to the review after it, so that the last one it reads has the days until now. From its state
    after that, :math:`h`,

    .. math:: p = \sigma(w \cdot h + b).

    Nothing makes its forgetting curve fall. With 8 hidden units it has 297 parameters: 3·8·(2 +
    8) weights and two bias vectors of 3·8 in the GRU, 8 weights and a bias in the last layer. It
    does not read same-day reviews.

    Published row (January 2025; pretrained on users 1 to 100, who are scored too): log loss
    0.352, RMSE(bins) 0.063, AUC 0.687; 0.346 where it reads same-day reviews.
    There, a fit of 16 epochs at
    a learning rate of 0.01 starts at the pretrained weights: with `weights`, that is what
    they are. Without, weights are drawn and trained for 40 epochs: such a network has only ever
    seen one person, which is another thing than the published one.

    Parameters
    ----------
    hidden : int
        Number of hidden units.

    Other options: see `PooledPretraining`.

    References
    ----------
    Cho, K., et al. (2014). Learning phrase representations using RNN encoder-decoder for
    statistical machine translation. EMNLP. https://doi.org/10.3115/v1/D14-1179
    """

    hidden: int = 8
    name: ClassVar[str] = "gru_p"
    network: ClassVar[type[Network]] = GruPNetwork
    recipe: ClassVar[Recipe] = Recipe(
        epochs=40, batch_size=512, learning_rate=0.01, weight_decay=1e-5
    )
    fine_tuning: ClassVar[Recipe] = Recipe(
        epochs=16, batch_size=512, learning_rate=0.01, weight_decay=1e-5
    )
