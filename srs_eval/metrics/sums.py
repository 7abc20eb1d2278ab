"""Sums over reviews, from which metrics are computed.

Sums of chunks, of users and of resampled clusters add up. So one pass over the reviews is
enough for all metrics, and resampling users or cards is a product of two matrices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from srs_eval.nouns import BoolArray, FloatArray, IntArray, Predictions
from srs_eval.nouns.predictions import select

# Reviews processed together: few enough that intermediate results stay in the cache.
CHUNK = 2**14


class Sums(Protocol):
    """Numbers of each review, to be added up within cells: a frozen, hashable value.

    Metrics that name equal sums share them.
    """

    @property
    def cells(self) -> int:
        """Number of cells."""

    def cell(self, predictions: Predictions) -> IntArray | None:
        """Cell of each review [n], from 0; None if there is one cell."""

    def values(self, predictions: Predictions) -> Sequence[FloatArray | BoolArray]:
        """Numbers to be added up, or truths to be counted: some columns [n]."""


class OneCell:
    """Base of sums over all reviews together."""

    __slots__ = ()
    cells: ClassVar[int] = 1

    def cell(self, predictions: Predictions) -> IntArray | None:
        """Return None: there is one cell."""
        return None


class ResidualSums:
    """Base of sums that count reviews, and add up prediction less outcome."""

    __slots__ = ()

    def values(self, predictions: Predictions) -> Sequence[FloatArray | BoolArray]:
        """Return 1, and prediction minus outcome."""
        residual = predictions.p.astype(np.float64, copy=False) - predictions.recalled
        return np.ones(len(residual), np.bool_), residual


def codes_of(labels: NDArray[Any]) -> tuple[IntArray, int]:
    """Return the rank of each label [n] among the distinct labels, and their number.

    Linear in time where they are whole numbers in a narrow range, as most are.
    """
    if labels.dtype.kind in "iu" and labels.size:
        labels = labels.astype(np.int64, copy=False)
        least, most = int(labels.min()), int(labels.max())
        if most - least <= 8 * labels.size:
            shifted = labels - least
            present = np.zeros(most - least + 1, np.bool_)
            present[shifted] = True
            number = np.cumsum(present) - 1
            return number[shifted], int(number[-1]) + 1
    known, code = np.unique(labels, return_inverse=True)
    return code, len(known)


@dataclass(frozen=True, slots=True)
class Totals:
    """Totals of the cells that hold reviews."""

    cell: IntArray  # [used], increasing: Cells that hold reviews of any group
    values: FloatArray  # [groups, used, columns]: Sums of each group in each of these cells


def add_up(
    sums: Sequence[Sums],
    predictions: Predictions,
    group: IntArray | None = None,
    groups: int = 1,
    *,
    chunk: int = CHUNK,
) -> list[Totals]:
    """Add up several sums of checked predictions in one pass, `chunk` reviews at a time.

    `group` is the group of each review, such as its user: increasing, below `groups`.
    """
    parts: list[list[Totals]] = [[] for _ in sums]
    starts: list[tuple[int, int]] = []
    for reviews, within, first in _chunks(predictions, group, chunk):
        span = 1 if within is None else int(within[-1]) + 1
        starts.append((first, span))
        for place, each in zip(parts, sums, strict=True):
            place.append(_add_chunk(each, reviews, within, span))
    return [_joined(place, starts, groups) for place in parts]


def stacked(parts: Sequence[Totals]) -> Totals:
    """Concatenate the groups of several totals of the same sums."""
    used = np.unique(np.concatenate([part.cell for part in parts]))
    groups = sum(len(part.values) for part in parts)
    values = np.zeros((groups, len(used), parts[0].values.shape[-1]))
    begin = 0
    for part in parts:
        end = begin + len(part.values)
        values[begin:end, np.searchsorted(used, part.cell)] = part.values
        begin = end
    return Totals(used, values)


def _chunks(
    predictions: Predictions, group: IntArray | None, chunk: int
) -> Iterator[tuple[Predictions, IntArray | None, int]]:
    """Yield chunks of reviews, their groups minus the first group, and the first group."""
    bare = replace(predictions, curves=None)
    for begin in range(0, max(1, len(predictions)), chunk):
        rows = slice(begin, begin + chunk)
        if group is None or not len(predictions):
            yield select(bare, rows), None, 0
        else:
            first = int(group[begin])
            yield select(bare, rows), group[rows] - first, first


def _add_chunk(sums: Sums, chunk: Predictions, group: IntArray | None, groups: int) -> Totals:
    """Add up one of the sums over a chunk."""
    columns = sums.values(chunk)
    cell = sums.cell(chunk)
    one = np.zeros(1, np.int64)
    if group is None:
        if cell is None:
            return Totals(one, np.array([[[column.sum(dtype=np.float64) for column in columns]]]))
        used = np.flatnonzero(np.bincount(cell, minlength=1))
        added = [np.bincount(cell, column, 1)[used] for column in columns]
        return Totals(used, np.stack(added, axis=-1, dtype=np.float64)[None])
    if cell is None:
        first = np.flatnonzero(np.diff(group, prepend=-1))
        values = np.zeros((groups, 1, len(columns)))
        for number, column in enumerate(columns):
            values[group[first], 0, number] = np.add.reduceat(column, first, dtype=np.float64)
        return Totals(one, values)
    held = np.bincount(cell, minlength=1) > 0
    used = np.flatnonzero(held)
    code = group * len(used) + (np.cumsum(held) - 1)[cell]
    added = [np.bincount(code, column, groups * len(used)) for column in columns]
    values = np.stack(added, axis=-1, dtype=np.float64)
    return Totals(used, values.reshape(groups, len(used), len(columns)))


def _joined(parts: Sequence[Totals], starts: Sequence[tuple[int, int]], groups: int) -> Totals:
    """Combine the totals of all chunks."""
    if len(parts) == 1 and groups == 1:
        return parts[0]
    used = np.unique(np.concatenate([part.cell for part in parts]))
    columns = parts[0].values.shape[-1]
    values = np.zeros((groups, len(used), columns))
    for part, (first, span) in zip(parts, starts, strict=True):
        rows = slice(first, first + span)
        if len(part.cell) == len(used):
            values[rows] += part.values
        else:
            values[rows, np.searchsorted(used, part.cell)] += part.values
    return Totals(used, values)
