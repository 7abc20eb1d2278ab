"""The smallest recurrent network of the public benchmark: a GRU with 39 parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from srs_eval.algorithms.neural.curves import PowerCurveNetwork
from srs_eval.algorithms.neural.network import Network, Sizes
from srs_eval.algorithms.neural.pretraining import PooledPretraining
from srs_eval.algorithms.neural.training import Recipe


class GruNetwork(PowerCurveNetwork):
    """One GRU layer and a linear one that gives the logarithm of the stability."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.rnn = nn.GRU(2, hidden)
        self.fc = nn.Linear(hidden, 1)

    def draw(self, generator: torch.Generator) -> None:
        """Draw orthogonal weights of the GRU, whose biases are 0, and the last layer as usual."""
        Network.draw(self, generator)
        draw_orthogonal(self.rnn, generator)

    def forward(self, inputs: Tensor) -> Tensor:
        """Logarithm of the stability after each review, [n_steps, n_cards, 1]."""
        states, _ = self.rnn(inputs)
        log_stability: Tensor = self.fc(states)
        return log_stability


def draw_orthogonal(rnn: nn.GRU, generator: torch.Generator) -> None:
    """Make the matrices of a layer orthogonal, and its biases 0."""
    with torch.no_grad():
        for parameter in rnn.parameters():
            if parameter.dim() > 1:
                nn.init.orthogonal_(parameter, generator=generator)
            else:
                parameter.zero_()


@dataclass(frozen=True)
class Gru(PooledPretraining):
    r"""A gated recurrent unit that reads a card's history and gives its stability.

    For each earlier review of the card the network reads the days since the review before it
    and the rating, 1 to 4, both as they are. From its state after the last of them, :math:`h`,
    it predicts recall after :math:`t` days as

    .. math:: p = (1 + \tfrac{19}{81} t / S)^{-1/2}, \qquad S = \exp(w \cdot h + b).

    With 2 hidden units it has 39 parameters: 3·2·(2 + 2) weights and two bias vectors of 3·2 in
    the GRU, 2 weights and a bias in the last layer. It does not read same-day reviews.

    Published row (January 2025; pretrained on users 1 to 100, who are scored too): log loss
    0.375, RMSE(bins) 0.086, AUC 0.668. There, a fit of 5 epochs starts at the pretrained
    weights: with `weights`, that is what `epochs` is. Without, weights are drawn and trained
    for 60 epochs: such a network has only ever seen one person, which is another thing than
    the published one.

    It is here to compare with the public number. On the log of the command at ``algo=lstm`` it
    has a log loss of 0.458, where the LSTM has 0.432 and FSRS-6 0.434: use these.

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

    hidden: int = 2
    name: ClassVar[str] = "gru"
    network: ClassVar[type[Network]] = GruNetwork
    recipe: ClassVar[Recipe] = Recipe(
        epochs=60, batch_size=512, learning_rate=0.04, weight_decay=1e-5
    )

    def sizes(self, *, whole_days: bool) -> Sizes:
        """Hidden units."""
        return (self.hidden,)
