"""The LSTM as equations, which the engine compiles: the same loss and gradient, far sooner.

PyTorch spends most of its time on starting operations, each on a few numbers. The engine walks
along 16 cards at a time in straight machine code. Compiling takes seconds and grows with the square
of the number of hidden units. One thing differs: reviews whose predicted recall is above
1 - 2**-22 or below 1e-37 do not pull any further here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from srs_eval.algorithms.neural.network import Network
from srs_eval.algorithms.neural.sequences import Histories, ranges
from srs_eval.algorithms.neural.training import Recipe, epochs
from srs_eval.algorithms.recurrent.lstm_equations import LstmLayer
from srs_eval.cards import rows_by_card
from srs_eval.engine.compiled import compiled
from srs_eval.engine.equations import Maths, State, Value
from srs_eval.engine.layout import Packed
from srs_eval.engine.packing import pack
from srs_eval.nouns import IntArray

# A forgetting curve passes through 0.9 one stability after the review.
FORGETTING_RATE = -math.log(0.9)
# Keeps stabilities between a microsecond and 200 million years: only non-numbers are excluded.
LARGEST_LOG_STABILITY = 25.0


@dataclass(frozen=True, slots=True)
class PublishedLstmEquations(LstmLayer):
    """The layer on raw days, with an exponential curve; parameters as in `LstmNetwork`."""

    def curve(self, m: Maths, w: Value, state: State, elapsed: Value) -> Value:
        """Return recall by exponential forgetting."""
        limit = LARGEST_LOG_STABILITY
        log_stability = m.clip(self.output(w, state, 0), -limit, limit)
        return m.exp(-FORGETTING_RATE * elapsed * m.exp(-log_stability))


class CompiledLoss(torch.autograd.Function):
    """Sum of the log losses of packed reviews, as a function of all parameters in one row."""

    @staticmethod
    def forward(ctx: Any, parameters: Tensor, hidden: int, packed: Packed) -> Tensor:
        """Compute the loss, and its gradient on the way."""
        model = compiled(PublishedLstmEquations(hidden))
        loss, gradient = model.gradient(parameters.detach().numpy(), packed)
        ctx.save_for_backward(torch.from_numpy(np.array(gradient)))
        return parameters.new_tensor(loss)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None, None]:
        """Pass the gradient on."""
        (gradient,) = ctx.saved_tensors
        return slopes[0] * gradient, None, None


def packed_groups(
    histories: Histories,
    groups: Sequence[IntArray],
    dtype: type[np.float32] | type[np.float64] = np.float32,
) -> list[Packed]:
    """Pack each group of cards for the engine."""
    reviews = histories.reviews
    cards, ones = rows_by_card(reviews.card), np.ones(len(reviews))
    packed = []
    for group in groups:
        which = ranges(histories.target_begin[group], histories.target_count[group])
        targets = histories.rows[histories.target[which]]
        packed.append(pack(reviews, targets, weight=ones[targets], dtype=dtype, cards=cards))
    return packed


def train_compiled(
    network: Network, packed: Sequence[Packed], recipe: Recipe, generator: torch.Generator
) -> Iterator[float]:
    """Train a network in place, yielding the loss of each epoch."""
    hidden = int(network.rnn.hidden_size)  # type: ignore[union-attr, arg-type]
    parameters = torch.from_numpy(network.vector().astype(np.float64)).requires_grad_()

    def loss(batch: Packed) -> Tensor:
        value: Tensor = CompiledLoss.apply(parameters, hidden, batch)  # type: ignore[no-untyped-call]
        return value

    for total in epochs([parameters], packed, loss, recipe, generator):
        network.load(parameters.detach().numpy())
        yield total
