"""FSRS-6 trained as many public scripts do it: every review a padded sequence of its own.

A review with k reviews before it is walked through k steps, although most of them are those
of the review before; automatic differentiation keeps every step in memory. It is here as the
plain way, to be compared with.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from workloads import Workload

from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6Equations
from srs_eval.data.cards import rows_by_card
from srs_eval.data.reviews import FloatArray

EPOCHS, BATCH_SIZE, LEARNING_RATE, SEED = 5, 512, 0.04, 2023


class TorchMaths:
    """The mathematics namespace of `srs_eval.engine.equations`, on tensors."""

    def exp(self, value: Any) -> Tensor:
        """Return e to the power of `value`."""
        return torch.exp(torch.as_tensor(value))

    def log(self, value: Any) -> Tensor:
        """Return the natural logarithm."""
        return torch.log(torch.as_tensor(value))

    def where(self, condition: Any, yes: Any, no: Any) -> Tensor:
        """Choose between two values."""
        return torch.where(condition, torch.as_tensor(yes), torch.as_tensor(no))

    def minimum(self, left: Any, right: Any) -> Tensor:
        """Return the smaller value."""
        return torch.minimum(torch.as_tensor(left), torch.as_tensor(right))

    def maximum(self, left: Any, right: Any) -> Tensor:
        """Return the larger value."""
        return torch.maximum(torch.as_tensor(left), torch.as_tensor(right))

    def clip(self, value: Any, low: Any, high: Any) -> Tensor:
        """Move `value` into ``[low, high]``."""
        return self.minimum(self.maximum(value, low), high)

    def rint(self, value: Any) -> Tensor:
        """Round to the nearest whole number."""
        return torch.round(torch.as_tensor(value))


class Batch(NamedTuple):
    """Reviews side by side, each with a copy of its history."""

    sequences: Tensor  # [T, n, 2]: Days and rating of each earlier review of the card, then zeros
    delta_ts: Tensor  # [n]: Days since the last of them
    seq_lens: Tensor  # [n]: How many they are
    labels: Tensor  # [n]: 1.0 where recalled
    weights: Tensor  # [n]


def batches(workload: Workload) -> list[Batch]:
    """Cut the training reviews, shortest histories first, into batches."""
    reviews, rows, weights = workload.reviews, workload.train, workload.recency
    cards = rows_by_card(reviews.card)
    order = np.argsort(cards.nth[rows], kind="stable")
    order = order[cards.nth[rows][order] > 0]
    entries = np.column_stack([np.maximum(reviews.elapsed, 0.0), reviews.rating])
    known = torch.from_numpy(entries[cards.order].astype(np.float32))
    begins, lengths = cards.begins[cards.number[rows]], cards.nth[rows]
    columns = (reviews.elapsed[rows], reviews.recalled[rows], weights)
    columns = [torch.from_numpy(np.asarray(column, np.float32)) for column in columns]
    made = []
    for at in range(0, len(order), BATCH_SIZE):
        some = order[at : at + BATCH_SIZE]
        histories = [known[begins[row] : begins[row] + lengths[row]] for row in some]
        elapsed, labels, weight = (column[some] for column in columns)
        lens = torch.from_numpy(lengths[some])
        made.append(Batch(pad_sequence(histories), elapsed, lens, labels, weight))
    return made


def train(batches: list[Batch]) -> FloatArray:
    """Run 5 epochs of Adam with a cosine schedule, from the published parameters.

    Returns
    -------
    float64 [21]
        The parameters after the last step.
    """
    space = Fsrs6Equations.parameters
    lower, upper = torch.tensor(space.lower), torch.tensor(space.upper)
    w = nn.Parameter(torch.tensor(space.defaults))
    optimiser = torch.optim.Adam([w], lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, len(batches) * EPOCHS)
    shuffle = torch.Generator().manual_seed(SEED)
    for _ in range(EPOCHS):
        for number in torch.randperm(len(batches), generator=shuffle).tolist():
            optimiser.zero_grad()
            _loss(w, batches[number]).backward()
            optimiser.step()
            schedule.step()
            with torch.no_grad():
                w.copy_(torch.clamp(w, lower, upper))
    return w.detach().double().numpy()


def _loss(w: Tensor, batch: Batch) -> Tensor:
    """Weighted log loss of one batch, summed."""
    m, equations, history = TorchMaths(), Fsrs6Equations(), batch.sequences
    state = equations.init(m, w, history[0, :, 1])
    states = [torch.stack(state)]
    for days, rating in zip(history[1:, :, 0], history[1:, :, 1], strict=True):
        p = equations.curve(m, w, state, days)
        state = equations.step(m, w, state, days, rating, p)
        states.append(torch.stack(state))
    last = torch.stack(states)[batch.seq_lens - 1, :, torch.arange(len(batch.seq_lens))]
    p = equations.curve(m, w, (last[:, 0], last[:, 1]), batch.delta_ts)
    losses = nn.functional.binary_cross_entropy(p, batch.labels, reduction="none")
    return (losses * batch.weights).sum()
