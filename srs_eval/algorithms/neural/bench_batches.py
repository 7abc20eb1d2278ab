"""What a module of srs-benchmark is given: a table of training reviews, and padded histories."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from srs_eval.algorithms.neural.sequences import ranges, side_by_side
from srs_eval.cards import rows_by_card
from srs_eval.nouns import FloatArray, IntArray, Reviews

# Entries of histories that are padded together in a prediction.
_ENTRIES_AT_A_TIME = 2**20


class Batch(NamedTuple):
    """Reviews side by side, each with a copy of its history."""

    sequences: Tensor  # [T, n, 2]: Days and rating of each earlier review of the card, then zeros
    delta_ts: Tensor  # [n]: Days since the last of them
    seq_lens: Tensor  # [n]: How many they are
    labels: Tensor  # [n]: 1.0 where recalled
    weights: Tensor  # [n]


class Asked(NamedTuple):
    """Some rows to be predicted together, and their histories."""

    place: IntArray  # Positions in the rows asked for
    sequences: Tensor  # As in `Batch`
    seq_lens: Tensor


def training_table(reviews: Reviews, rows: IntArray, weights: FloatArray | None) -> pd.DataFrame:
    """Tabulate training reviews as srs-benchmark does.

    Columns: ``card_id``, ``review_th``, ``rating``, ``elapsed_days``, ``delta_t`` (days, on the
    clock of the protocol), ``y`` (1 recalled), ``i`` (1, and one more for each later-day review of
    the card, this one included), ``first_rating`` (text), ``tensor`` (float32 [T, 2], days and
    rating of each earlier review of the card) and, where they are weighed, ``weights``.
    """
    cards = rows_by_card(reviews.card)
    later_day = reviews.elapsed_days > 0
    length = cards.nth[rows]
    read = cards.order[ranges(cards.begins[cards.number[rows]], length)]
    entries = torch.from_numpy(_entries(reviews)[read])
    table = pd.DataFrame(
        {
            "card_id": reviews.card[rows],
            "review_th": rows + 1,
            "rating": reviews.rating[rows],
            "elapsed_days": reviews.elapsed_days[rows],
            "delta_t": reviews.elapsed[rows],
            "y": reviews.recalled[rows].astype(np.int64),
            "i": 1 + (cards.earlier(later_day) + later_day)[rows],
            "first_rating": reviews.rating[cards.first()[rows]].astype(str),
            "tensor": pd.Series(list(torch.split(entries, length.tolist())), dtype=object),
        }
    )
    return table if weights is None else table.assign(weights=weights)


def batches_of(table: pd.DataFrame, batch_size: int, longest: int) -> list[Batch]:
    """Cut a training table, sorted by the lengths of histories, into batches.

    Reviews with a history of more than `longest` are left out.
    """
    lengths = table["tensor"].map(len).to_numpy(np.int64)
    order = np.argsort(lengths, kind="stable")
    order = order[(lengths[order] > 0) & (lengths[order] <= longest)]
    tensors = table["tensor"].to_numpy()
    weights = table["weights"] if "weights" in table else pd.Series(np.ones(len(table)))
    numbers = [column.to_numpy(np.float32) for column in (table["delta_t"], table["y"], weights)]
    batches = []
    for cut in range(0, len(order), batch_size):
        some = order[cut : cut + batch_size]
        elapsed, recalled, weight = (torch.from_numpy(column[some]) for column in numbers)
        sequences = pad_sequence(list(tensors[some]))
        lens = torch.from_numpy(lengths[some])
        batches.append(Batch(sequences, elapsed, lens, recalled, weight))
    return batches


def asked_of(reviews: Reviews, rows: IntArray) -> Iterator[Asked]:
    """Pad the histories of rows, some rows of like length at a time; first reviews are left out."""
    cards = rows_by_card(reviews.card)
    entries, length = _entries(reviews), cards.nth[rows]
    order = np.argsort(length, kind="stable")
    order = order[length[order] > 0]
    while len(order):
        # Lengths grow along `order`, and within a group at most twofold.
        shortest = int(length[order[0]])
        count = np.searchsorted(length[order], 2 * shortest + 1)
        some = order[: max(1, min(int(count), _ENTRIES_AT_A_TIME // (2 * shortest)))]
        review = side_by_side(cards, cards.number[rows[some]], length[some])
        yield Asked(some, torch.from_numpy(entries[review]), torch.from_numpy(length[some]))
        order = order[len(some) :]


def _entries(reviews: Reviews) -> FloatArray:
    """Days since the card's review before, and rating, float32 [n + 1, 2]; zeros at the end."""
    entries = np.zeros((len(reviews) + 1, 2), np.float32)
    entries[:-1] = np.column_stack([np.maximum(reviews.elapsed, 0.0), reviews.rating])
    return entries
