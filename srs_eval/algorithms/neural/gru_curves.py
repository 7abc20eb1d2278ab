"""A GRU with 503 parameters whose forgetting curve is a mixture of two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from torch import Tensor, nn

from srs_eval.algorithms.neural.curves import CurveHeads, CurveMixtureNetwork
from srs_eval.algorithms.neural.network import Network, Sizes, one_hot
from srs_eval.algorithms.neural.pretraining import ReptilePretraining
from srs_eval.algorithms.neural.training import Ramps, Recipe
from srs_eval.nouns import FloatArray, Reviews

_SHORTEST = 1e-5


class GruCurvesNetwork(CurveMixtureNetwork):
    """A GRU between layers that work on each review alone."""

    n_scaled: ClassVar[int] = 1

    def __init__(self, hidden: int, curves: int) -> None:
        super().__init__()
        self.before = nn.Sequential(
            nn.Linear(5, hidden), nn.SiLU(), nn.LayerNorm(hidden, bias=False)
        )
        self.rnn = nn.GRU(hidden, hidden)
        self.after = nn.Sequential(
            nn.LayerNorm(hidden, bias=False),
            nn.Linear(hidden, hidden),
            nn.SiLU(),
            nn.LayerNorm(hidden, bias=False),
        )
        self.heads = CurveHeads(hidden, curves)

    def features(self, reviews: Reviews) -> FloatArray:
        """Logarithm of the days since the card's review before, and the rating as 0/1 numbers."""
        return np.column_stack([np.log(_SHORTEST + reviews.elapsed), one_hot(reviews.rating)])

    def forward(self, inputs: Tensor) -> Tensor:
        """Compute what the heads say after each review, [n_steps, n_cards, 3 * curves]."""
        read, _ = self.rnn(self.before(self.scaled(inputs)))
        states: Tensor = self.heads(self.after(read))
        return states


@dataclass(frozen=True)
class GruCurves(ReptilePretraining):
    r"""A gated recurrent unit that gives a mixture of two forgetting curves.

    For each earlier review of the card, same-day ones included, the network reads the logarithm
    of the days since the review before it, standardised by the training reviews, and the rating
    as four 0/1 numbers. A linear layer, SiLU and LayerNorm prepare them for a GRU, and the same
    follow it. Three linear layers then give weights :math:`\pi`, scales :math:`s` and exponents
    :math:`d` of

    .. math:: p = (1 - 10^{-7}) \sum_i \pi_i (1 + t / (10^{-7} + s_i))^{-d_i}.

    503 parameters. Made for fractional days. Source: the public benchmark
    (srs-benchmark, 2026).

    Published row, without same-day reviews (pretrained with Reptile on users 1 to 100, who are
    scored too; fine-tuned on each user): log loss 0.3328, RMSE(bins) 0.0549, AUC 0.7324. With
    `weights`, fits start at them by the published recipe, except that the state of the inner
    optimiser is not kept: 21 epochs, batches of 8,192, learning rates that rise to 0.0097 and fall
    again, weight decay, a pull towards the weights, and more weight on recent reviews. Without,
    weights are drawn and trained for 40 epochs by the common recipe, with the same weight on
    recent reviews: such a network has only ever seen one person, which is another thing than the
    published one.

    Parameters
    ----------
    hidden : int
        Width of all layers.

    Other options: see `ReptilePretraining`.
    """

    hidden: int = 7
    name: ClassVar[str] = "gru_curves"
    network: ClassVar[type[Network]] = GruCurvesNetwork
    same_day: ClassVar[bool] = True
    recipe: ClassVar[Recipe] = Recipe(
        epochs=40, batch_size=512, learning_rate=0.02, recency=(20.3285, 2.8844)
    )
    fine_tuning: ClassVar[Recipe] = Recipe(
        epochs=21,
        batch_size=8192,
        learning_rate=0.0097342,
        schedule=Ramps(0.00062512 / 0.0097342, 6 / 21, 0.0023871 / 0.0097342),
        weight_decay=0.297537,
        exponent=1.18462,
        prox=1.87156e-5,
        clip=167.863,
        recency=(20.3285, 2.8844),
    )
    inner: ClassVar[Recipe] = Recipe(
        epochs=18,
        batch_size=8192,
        learning_rate=0.000207,
        schedule=Ramps(0.011728 / 0.000207, 6 / 18, 0.001814 / 0.000207),
        betas=(0.17532, 0.97238),
        weight_decay=0.007763,
        exponent=0.94686,
        prox=3.0187e-8,
        clip=24.734,
    )
    outer: ClassVar[Recipe] = Recipe(
        epochs=1,
        batch_size=1,
        learning_rate=0.02,
        betas=(0.8311, 0.9180),
        weight_decay=0.004897,
    )

    def sizes(self, *, whole_days: bool) -> Sizes:
        """Width, and number of curves."""
        return (self.hidden, 2)
