"""What an epoch of the LSTM costs: each card read once, against one padded history per review.

    python benchmarks/networks.py

All have the same training reviews in the same number of batches, the same network, the same loss
and the same gradient, on one thread. Compiled is what `LstmPublished` does, packed what the other
networks do: PyTorch reads each card once. The padded way, PyTorch as well, is given both orders of
its reviews that are in use: histories of like length together, as the public benchmark has it,
which pads least; and shuffled. All are in single precision.
Batches are made, and code is compiled, before the clock starts.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from measure import clocked
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from workloads import Workload, synthetic_workload

from srs_eval.algorithms.neural.lstm_published import LstmNetwork
from srs_eval.algorithms.neural.lstm_published_equations import (
    PublishedLstmEquations,
    packed_groups,
)
from srs_eval.algorithms.neural.network import (
    Network,
    TrainingBatch,
    built,
    feature_table,
    log_loss,
    summed_loss,
    training_batches,
)
from srs_eval.algorithms.neural.sequences import groups_of_targets, histories_before
from srs_eval.algorithms.neural.training import generator_from, one_thread
from srs_eval.engine.compiled import compiled
from srs_eval.engine.layout import Packed
from srs_eval.nouns import FloatArray, IntArray, Reviews

Batch = TypeVar("Batch")

LONGEST, BATCH_SIZE, REPEATS = 64, 512, 7


@dataclass(frozen=True, slots=True)
class PaddedBatch:
    """Reviews, each with its own copy of the history before it.

    Attributes
    ----------
    inputs : float [longest, batch, features]
    length : int64 [batch]
    elapsed : float [batch]
    forgotten : bool [batch]
    """

    inputs: Tensor
    length: Tensor
    elapsed: Tensor
    forgotten: Tensor


def drawn_network(precision: torch.dtype = torch.float32) -> Network:
    """Build the LSTM of 489 parameters, with random weights."""
    network = built(LstmNetwork, (8,)).to(precision)
    network.draw(generator_from(0))
    return network


def packed_batches(
    network: Network, reviews: Reviews, rows: IntArray, precision: torch.dtype = torch.float32
) -> list[TrainingBatch]:
    """Make the batches `LstmPublished` trains on."""
    histories = histories_before(reviews, rows, longest=LONGEST)
    order = np.random.default_rng(0).permutation(len(histories.length))
    groups = groups_of_targets(histories, order, per_group=BATCH_SIZE)
    return training_batches(network, reviews, rows, histories, groups, precision=precision)


def padded_batches(
    network: Network,
    reviews: Reviews,
    rows: IntArray,
    *,
    shuffled: bool = False,
    precision: torch.dtype = torch.float32,
) -> list[PaddedBatch]:
    """Copy the history before each of `rows`, and pad those of a batch to the longest."""
    table = feature_table(network, reviews, "cpu", precision=precision)
    before: dict[int, list[int]] = {}
    wanted = set(rows.tolist())
    histories, targets = [], []
    for row, card in enumerate(reviews.card.tolist()):
        mine = before.setdefault(card, [])
        if row in wanted and 0 < len(mine) <= LONGEST:
            histories.append(table[mine])
            targets.append(row)
        mine.append(row)
    lengths = np.array([len(history) for history in histories])
    order = np.argsort(lengths, kind="stable")
    if shuffled:
        order = np.random.default_rng(0).permutation(len(lengths))
    elapsed = torch.as_tensor(reviews.elapsed[targets], dtype=precision)
    forgotten = torch.from_numpy(~reviews.recalled[targets])
    return [
        PaddedBatch(
            pad_sequence([histories[place] for place in places]),
            torch.from_numpy(lengths[places]),
            elapsed[places],
            forgotten[places],
        )
        for places in np.split(order, range(BATCH_SIZE, len(order), BATCH_SIZE))
    ]


def padded_loss(network: Network, batch: PaddedBatch) -> Tensor:
    """Sum the log losses of a batch, each read off the end of its own history."""
    states = network(batch.inputs)[batch.length - 1, torch.arange(len(batch.length))]
    return log_loss(network.decay(states, batch.elapsed), batch.forgotten).sum()


def compiled_batches(
    reviews: Reviews, rows: IntArray, dtype: type[np.float32] | type[np.float64] = np.float32
) -> list[Packed]:
    """Make the batches `LstmPublished` trains on, packed for the engine."""
    histories = histories_before(reviews, rows, longest=LONGEST)
    order = np.random.default_rng(0).permutation(len(histories.length))
    groups = groups_of_targets(histories, order, per_group=BATCH_SIZE)
    return packed_groups(reviews, rows, histories, groups, dtype)


def slopes(
    network: Network, loss: Callable[[Network, Batch], Tensor], batches: Sequence[Batch]
) -> tuple[float, FloatArray]:
    """Sum losses and gradients over batches, by PyTorch."""
    parameters = list(network.parameters())
    total, gradient = 0.0, np.zeros(sum(parameter.numel() for parameter in parameters))
    for batch in batches:
        value = loss(network, batch)
        found = torch.autograd.grad(value, parameters)
        total += float(value.detach())
        gradient += torch.cat([slope.reshape(-1) for slope in found]).numpy()
    return total, gradient


def compiled_slopes(network: Network, batches: Sequence[Packed]) -> tuple[float, FloatArray]:
    """Sum losses and gradients over batches, by the engine."""
    model, w = compiled(PublishedLstmEquations(8)), network.vector().astype(np.float64)
    total, gradient = 0.0, np.zeros(len(w))
    for batch in batches:
        value, found = model.gradient(w, batch)
        total += value
        gradient += found
    return total, gradient


def report(workload: Workload) -> None:
    """Print CPU times of an epoch in four ways, and how many times the compiled one's they are."""
    network = drawn_network()
    reviews, rows = workload.reviews, workload.train
    ready = compiled_batches(reviews, rows)
    packed = packed_batches(network, reviews, rows)
    like = padded_batches(network, reviews, rows)
    shuffled = padded_batches(network, reviews, rows, shuffled=True)
    read = sum(int(batch.length.sum()) for batch in like)
    targets = sum(len(batch.entry) for batch in packed)
    print(f"{workload.name}: {targets:,} to learn from, {read / targets:.1f} reviews before each")
    ways: dict[str, Callable[[], object]] = {
        "compiled": lambda: compiled_slopes(network, ready),
        "packed": lambda: slopes(network, summed_loss, packed),
        "padded, like length": lambda: slopes(network, padded_loss, like),
        "padded, shuffled": lambda: slopes(network, padded_loss, shuffled),
    }
    ways["compiled"]()
    times: dict[str, list[float]] = {name: [] for name in ways}
    with one_thread():
        for _ in range(REPEATS):
            for name, way in ways.items():
                times[name].append(clocked(way).cpu)
    for name, spent in times.items():
        ratios = [one / other for one, other in zip(spent, times["compiled"], strict=True)]
        low, middle, high = min(ratios), statistics.median(ratios), max(ratios)
        milliseconds = 1000 * statistics.median(spent)
        print(f"  {name:20s} {milliseconds:7.2f} ms CPU, {middle:6.1f} ({low:.1f} to {high:.1f})")


def user_of(cards: IntArray, name: str) -> Workload:
    """Make a user whose cards have these numbers of reviews, one every few days."""
    rng = np.random.default_rng(0)
    card = np.repeat(np.arange(len(cards)), cards)
    first = np.r_[True, card[1:] != card[:-1]]
    elapsed = rng.integers(1, 15, len(card))
    walked = np.cumsum(elapsed)
    begins = np.repeat(walked[first] - rng.integers(0, 300, len(cards)), cards)
    order = np.argsort(walked - begins, kind="stable")
    log = Reviews(
        user=name,
        card=card[order],
        day=(walked - begins)[order],
        rating=rng.choice([1, 2, 3, 4], len(card), p=[0.15, 0.1, 0.65, 0.1]),
        elapsed_days=np.where(first, -1, elapsed)[order],
        elapsed=np.where(first, 0.0, elapsed)[order],
        row=np.arange(len(card)),
    )
    rows = np.flatnonzero(log.elapsed_days > 0)
    return Workload(name, log, rows, rows[:0], np.zeros(len(card), np.int64))


def main() -> None:
    """Report on users with 10,000 reviews: a simulated one, short histories, and long ones."""
    report(synthetic_workload(10_000))
    rng = np.random.default_rng(0)
    report(user_of(np.minimum(rng.geometric(0.1, 1000), 128), "10 reviews a card"))
    report(user_of(np.full(10_000 // 64, 64), "64 reviews a card"))


if __name__ == "__main__":
    main()
