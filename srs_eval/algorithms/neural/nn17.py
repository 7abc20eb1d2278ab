"""SuperMemo's algorithm SM-17, approximated by five tiny networks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from srs_eval.algorithms.neural.network import Network, Sizes
from srs_eval.algorithms.neural.pretraining import PooledPretraining
from srs_eval.algorithms.neural.training import Recipe

_STABILITY = (1.0, 2.5, 4.5, 10.0)
_DIFFICULTY = (1.0, 0.72, 0.07, 0.05)
_INCREASE = (1.26, 0.0, 0.67)
_LONGEST_FIRST_STABILITY, _LONGEST_STABILITY = 100.0, 36500.0
_LOWEST, _HIGHEST = 1e-4, 0.9999
_FORGETTING_RATE = -math.log(0.9)


class Nn17Network(Network):
    """Stability and difficulty, moved from review to review by five networks of one neuron."""

    def __init__(self, shortest_stability: float) -> None:
        super().__init__()
        self.shortest = shortest_stability
        self.first_stability = nn.Parameter(torch.empty(4))
        self.first_difficulty = nn.Parameter(torch.empty(4))
        self.increase = nn.Parameter(torch.empty(3))
        self.retrievability = _neuron(3)
        self.difficulty = _neuron(3)
        self.post_lapse = _neuron(2)
        self.correction = _neuron(3)
        self.best_increase = _neuron(2)

    def draw(self, generator: torch.Generator) -> None:
        """Draw the networks; first stabilities and difficulties begin where they are published."""
        Network.draw(self, generator)
        with torch.no_grad():
            self.first_stability.copy_(torch.tensor(_STABILITY))
            self.first_difficulty.copy_(torch.tensor(_DIFFICULTY))
            self.increase.copy_(torch.tensor(_INCREASE))

    def clip(self) -> None:
        """Move the parameters outside of the networks back into their bounds."""
        with torch.no_grad():
            self.first_stability.clamp_(self.shortest, _LONGEST_FIRST_STABILITY)
            self.first_difficulty.clamp_(0.0, 1.0)
            lowest = self.increase.new_tensor([-5.0, 0.0, -5.0])
            self.increase.clamp_(lowest, self.increase.new_tensor([5.0, 1.0, 5.0]))

    def forward(self, inputs: Tensor) -> Tensor:
        """Stability and difficulty after each review, [n_steps, n_cards, 2]."""
        days, rating = inputs.unbind(-1)
        which = (rating[0].long() - 1).clamp(0, 3)
        stability, difficulty = self.first_stability[which], self.first_difficulty[which]
        failures = (rating == 1).to(inputs.dtype).cumsum(0)
        states = [torch.stack([stability, difficulty], dim=-1)]
        for step in range(1, len(inputs)):
            stability, difficulty = self._step(
                stability, difficulty, days[step], rating[step], failures[step - 1]
            )
            states.append(torch.stack([stability, difficulty], dim=-1))
        return torch.stack(states)

    def decay(self, states: Tensor, elapsed: Tensor) -> Tensor:
        """Minus the logarithm of what the first network says of recall."""
        stability, difficulty = states.unbind(-1)
        theory = torch.exp(-_FORGETTING_RATE * elapsed / stability)
        return self._decay(difficulty, stability, theory)

    def _decay(self, difficulty: Tensor, stability: Tensor, theory: Tensor) -> Tensor:
        read = softplus(_ask(self.retrievability, difficulty, stability, theory))
        return read.clamp(-math.log(_HIGHEST), -math.log(_LOWEST))

    def _step(
        self, stability: Tensor, difficulty: Tensor, days: Tensor, rating: Tensor, failures: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Stability and difficulty after a review `days` after the one before."""
        theory = torch.exp(-_FORGETTING_RATE * days / stability).clamp(_LOWEST, _HIGHEST)
        decay = self._decay(difficulty, stability, theory)
        recall = torch.exp(-decay)
        difficulty = torch.sigmoid(_ask(self.difficulty, difficulty, recall, rating))
        # The stability with which recall would be what the first network says.
        real = (_FORGETTING_RATE / decay * days).clamp(self.shortest, _LONGEST_STABILITY)
        z = self.increase
        theory_increase = 1 + torch.exp(z[0]) * (5 * (1 - difficulty) + 1) * real ** -z[
            1
        ] * torch.exp(-recall * z[2])
        corrected = 1 + softplus(_ask(self.correction, difficulty, real, recall))
        increase = 1 + softplus(_ask(self.best_increase, theory_increase, corrected))
        lapsed = softplus(_ask(self.post_lapse, recall, failures))
        stability = torch.where(rating > 1, real * increase, lapsed)
        return stability.clamp(self.shortest, _LONGEST_STABILITY), difficulty


def _neuron(inputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, 1), nn.Mish(), nn.Linear(1, 1))


def _ask(neuron: nn.Sequential, *inputs: Tensor) -> Tensor:
    shape = np.broadcast_shapes(*(value.shape for value in inputs))
    answer: Tensor = neuron(torch.stack([value.expand(shape) for value in inputs], dim=-1))
    return answer[..., 0]


@dataclass(frozen=True)
class Nn17(PooledPretraining):
    """SM-17 with networks in place of its matrices.

    The state of a card is its stability and difficulty. Five networks of one hidden neuron each
    (Mish) say what recall really is, how difficulty moves, what stability is left after a lapse,
    and how much it grows otherwise. 39 parameters: 28 in the networks, 8 first stabilities and
    difficulties, 3 of the theoretical growth. Reads days between reviews, ratings and lapses;
    does not read same-day reviews. The public code takes cards for new while all cards
    of a batch have the state (1, 1), as after a first Again with untrained first states; here only
    a card's first review is new, so that no prediction depends on the batch (predictions of a card
    that begins with Again differ by up to 0.071 from those of the public code for that card alone).
    Source: the public benchmark (srs-benchmark,
    2024), after Woźniak's descriptions of SM-17 (https://supermemo.guru/wiki/Algorithm_SM-17).

    Published row (January 2025; pretrained on users 1 to 100, who are scored too): log loss
    0.398, RMSE(bins) 0.101, AUC 0.624. There, a fit of 5 epochs starts at the pretrained
    weights: with `weights`, that is what `epochs` is. Without, the networks are drawn and trained
    for 20 epochs.

    It is here to compare with the public number. On the log of the command at ``algo=lstm`` it
    has a log loss of 0.482, where the LSTM has 0.432.

    Options: see `PooledPretraining`.
    """

    name: ClassVar[str] = "nn17"
    network: ClassVar[type[Network]] = Nn17Network
    recipe: ClassVar[Recipe] = Recipe(epochs=20, batch_size=512, learning_rate=0.04)
    fine_tuning: ClassVar[Recipe] = Recipe(epochs=5, batch_size=512, learning_rate=0.04)
    pretraining: ClassVar[Recipe] = Recipe(epochs=32, batch_size=65_536, learning_rate=0.04)

    def sizes(self, *, whole_days: bool) -> Sizes:
        """Shortest stability, in days."""
        return (0.01 if whole_days else 0.0001,)
