"""The network behind `Lstm`: what it reads, what it gives, and its loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from srs_eval.algorithms.neural.sequences import Histories, batch_of
from srs_eval.nouns import FloatArray, IntArray, Reviews

Device = Literal["cpu", "cuda"]

# A forgetting curve passes through 0.9 one stability after the review.
FORGETTING_RATE = -math.log(0.9)

_N_FEATURES = 5
# Keeps stabilities between a microsecond and 200 million years: only non-numbers are excluded.
_LARGEST_LOG_STABILITY = 25.0
# The largest loss of one review, as in the published trainer.
_LARGEST_LOSS = 100.0


@dataclass(frozen=True, slots=True)
class TrainingBatch:
    """A few cards, and what to predict after which of their reviews.

    Attributes
    ----------
    inputs : float32 [n_steps, n_cards, 5]
        What the network reads.
    entry : int64 [n_targets]
        Which of the ``n_steps * n_cards`` outputs predicts each target.
    elapsed : float32 [n_targets]
        Days since the card's previous review.
    forgotten : bool [n_targets]
        Whether the rating was Again.
    """

    inputs: Tensor
    entry: Tensor
    elapsed: Tensor
    forgotten: Tensor


class LstmNetwork(nn.Module):
    """One LSTM layer and a linear one that gives the logarithm of the stability.

    Its parameters are not set until `draw` or `load` is called.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        # Built without memory first: the usual way draws from PyTorch's global generator.
        self.rnn = nn.LSTM(_N_FEATURES, hidden, device="meta").to_empty(device="cpu")
        self.fc = nn.Linear(hidden, 1, device="meta").to_empty(device="cpu")

    def draw(self, generator: torch.Generator) -> None:
        """Draw all parameters from U(-1/√hidden, 1/√hidden), PyTorch's own choice."""
        bound = 1 / math.sqrt(self.rnn.hidden_size)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.uniform_(-bound, bound, generator=generator)

    def load(self, values: FloatArray) -> None:
        """Set all parameters, in the order of `LstmModel.parameters`."""
        flat = torch.from_numpy(values.astype(np.float32))
        nn.utils.vector_to_parameters(flat, self.parameters())

    def vector(self) -> FloatArray:
        """All parameters in one row."""
        flat = nn.utils.parameters_to_vector(self.parameters())
        values: FloatArray = flat.detach().cpu().numpy()
        return values

    def forward(self, inputs: Tensor) -> Tensor:
        """Logarithm of the stability after each review.

        Parameters
        ----------
        inputs : float32 [n_steps, n_cards, 5]

        Returns
        -------
        float32 [n_steps, n_cards]
        """
        states, _ = self.rnn(inputs)
        return self._log_stability(states)

    def summed_loss(self, batch: TrainingBatch) -> Tensor:
        """Sum the log losses of a batch's targets."""
        log_stability = self(batch.inputs).reshape(-1)[batch.entry]
        return log_loss(log_stability, batch.elapsed, batch.forgotten).sum()

    def unread(self) -> Tensor:
        """Logarithm of the stability before any review, [1]."""
        return self._log_stability(torch.zeros_like(self.fc.weight))

    def _log_stability(self, states: Tensor) -> Tensor:
        limit = _LARGEST_LOG_STABILITY
        values: Tensor = self.fc(states).squeeze(-1).clamp(-limit, limit)
        return values


def log_loss(log_stability: Tensor, elapsed: Tensor, forgotten: Tensor) -> Tensor:
    """Log loss of each review, at most 100, computed from the logarithm of recall.

    Probabilities in single precision reach 0 and 1, where their gradient is lost; the
    logarithm does not.
    """
    # p = exp(-decay)
    decay = (FORGETTING_RATE * elapsed * torch.exp(-log_stability)).clamp(1e-30, _LARGEST_LOSS)
    return torch.where(forgotten, -torch.log(-torch.expm1(-decay)), decay)


def training_batches(
    reviews: Reviews,
    rows: IntArray,
    histories: Histories,
    groups: Sequence[IntArray],
    device: Device,
) -> list[TrainingBatch]:
    """Make a batch of each group of cards, ready on the device."""
    features = features_of(reviews, device)
    elapsed = torch.from_numpy(reviews.elapsed[rows].astype(np.float32)).to(device)
    forgotten = torch.from_numpy(~reviews.recalled[rows]).to(device)
    batches = []
    for cards in groups:
        batch = batch_of(histories, cards)
        target = torch.from_numpy(batch.target)
        batches.append(
            TrainingBatch(
                inputs=features[torch.from_numpy(batch.review)],
                entry=torch.from_numpy(batch.entry).to(device),
                elapsed=elapsed[target],
                forgotten=forgotten[target],
            )
        )
    return batches


def features_of(reviews: Reviews, device: Device) -> Tensor:
    """Tabulate what the network reads of each review, and a row of zeros for padding."""
    table = np.zeros((len(reviews) + 1, _N_FEATURES), np.float32)
    table[:-1, 0] = reviews.elapsed
    table[np.arange(len(reviews)), reviews.rating] = 1
    return torch.from_numpy(table).to(device)
