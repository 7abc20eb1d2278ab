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
from srs_eval.cards import rows_by_card
from srs_eval.engine.compiled import compiled
from srs_eval.engine.equations import Maths, State, Value
from srs_eval.engine.layout import Packed
from srs_eval.engine.packing import pack
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.nouns import IntArray, Reviews

# A forgetting curve passes through 0.9 one stability after the review.
FORGETTING_RATE = -math.log(0.9)
# Keeps stabilities between a microsecond and 200 million years: only non-numbers are excluded.
LARGEST_LOG_STABILITY = 25.0

_FEATURES = 5


@dataclass(frozen=True, slots=True)
class LstmEquations:
    """An LSTM layer and a linear one, with parameters in the order of `LstmNetwork`."""

    hidden: int

    @property
    def state_names(self) -> tuple[str, ...]:
        """Outputs and cells of the hidden units."""
        units = range(self.hidden)
        return (*(f"output {k}" for k in units), *(f"cell {k}" for k in units))

    @property
    def parameters(self) -> ParameterSpace:
        """As many as there are, without bounds."""
        gates = 4 * self.hidden
        n = gates * (_FEATURES + self.hidden + 2) + self.hidden + 1
        free = (math.inf,) * n
        return ParameterSpace((0.0,) * n, tuple(-bound for bound in free), free, (1.0,) * n)

    def init(self, m: Maths, w: Value, rating: Value) -> State:
        """State after a first review, which is read as 0 days after the one before."""
        return self._read(m, w, None, 0.0, rating)

    def curve(self, m: Maths, w: Value, state: State, elapsed: Value) -> Value:
        """Exponential forgetting."""
        last = 4 * self.hidden * (_FEATURES + self.hidden + 2)
        log_stability = w[last + self.hidden]
        for k in range(self.hidden):
            log_stability = log_stability + w[last + k] * state[k]
        limit = LARGEST_LOG_STABILITY
        return m.exp(-FORGETTING_RATE * elapsed * m.exp(-m.clip(log_stability, -limit, limit)))

    def step(
        self, m: Maths, w: Value, state: State, elapsed: Value, rating: Value, p: Value
    ) -> State:
        """State after one more review."""
        return self._read(m, w, state, elapsed, rating)

    def _read(
        self, m: Maths, w: Value, state: State | None, elapsed: Value, rating: Value
    ) -> State:
        gates = [
            self._gate(m, w, number, state, elapsed, rating) for number in range(4 * self.hidden)
        ]
        outputs, cells = [], []
        for k in range(self.hidden):
            taken, kept, new, shown = gates[k :: self.hidden]
            cell = _sigmoid(m, taken) * _tanh(m, new)
            if state is not None:
                cell = cell + _sigmoid(m, kept) * state[self.hidden + k]
            cells.append(cell)
            outputs.append(_sigmoid(m, shown) * _tanh(m, cell))
        return (*outputs, *cells)

    def _gate(
        self, m: Maths, w: Value, gate: int, state: State | None, elapsed: Value, rating: Value
    ) -> Value:
        """Sum up what comes in at one gate."""
        gates = 4 * self.hidden
        recurrent, biases = gates * _FEATURES, gates * (_FEATURES + self.hidden)
        read = _FEATURES * gate
        again, hard, good, easy = (w[read + 1 + k] for k in range(4))
        rated = m.where(
            rating == 1, again, m.where(rating == 2, hard, m.where(rating == 3, good, easy))
        )
        total = w[biases + gate] + w[biases + gates + gate] + w[read] * elapsed + rated
        if state is not None:
            for k in range(self.hidden):
                total = total + w[recurrent + self.hidden * gate + k] * state[k]
        return total


def _sigmoid(m: Maths, x: Value) -> Value:
    return 1 / (1 + m.exp(-x))


def _tanh(m: Maths, x: Value) -> Value:
    return 2 / (1 + m.exp(-2 * x)) - 1


class CompiledLoss(torch.autograd.Function):
    """Sum of the log losses of packed reviews, as a function of all parameters in one row."""

    @staticmethod
    def forward(ctx: Any, parameters: Tensor, hidden: int, packed: Packed) -> Tensor:
        """Compute the loss, and its gradient on the way."""
        model = compiled(LstmEquations(hidden))
        loss, gradient = model.gradient(parameters.detach().numpy(), packed)
        ctx.save_for_backward(torch.from_numpy(np.array(gradient)))
        return parameters.new_tensor(loss)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None, None]:
        """Pass the gradient on."""
        (gradient,) = ctx.saved_tensors
        return slopes[0] * gradient, None, None


def packed_groups(
    reviews: Reviews,
    rows: IntArray,
    histories: Histories,
    groups: Sequence[IntArray],
    dtype: type[np.float32] | type[np.float64] = np.float32,
) -> list[Packed]:
    """Pack each group of cards for the engine."""
    cards, ones = rows_by_card(reviews.card), np.ones(len(reviews))
    packed = []
    for group in groups:
        which = ranges(histories.target_begin[group], histories.target_count[group])
        targets = rows[histories.target[which]]
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
