"""Reviews arranged for kernels: cards of similar length side by side, in blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from srs_eval.nouns import FloatArray, IntArray, Reviews

LANES = 16  # cards side by side: the width of the widest registers in single precision
FACTS = 3  # elapsed days, rating, weight

_FILLER_RATING = 3
_ALIGNMENT = 64  # bytes


@dataclass(frozen=True, slots=True)
class Packed:
    """Reviews in blocks of `LANES` cards; within a block, review by review.

    Lanes beyond the last card, and places beyond the end of a card that is shorter than the
    longest of its block, hold reviews of weight 0.

    Attributes
    ----------
    reviews : float32 or float64 [places, 3, LANES]
        Elapsed days, rating, weight.
    starts, lengths : int64 [blocks]
        First place of each block, and how many places it has.
    rows : int64 [n]
        Row number of each review that is packed.
    places : int64 [n]
        Where it is: place * LANES + lane.
    """

    reviews: FloatArray
    starts: IntArray
    lengths: IntArray
    rows: IntArray
    places: IntArray

    @property
    def longest(self) -> int:
        """Number of reviews of the longest card."""
        return int(self.lengths.max(initial=0))

    def places_of(self, rows: IntArray) -> IntArray:
        """Find where reviews are, by row number; all must be packed."""
        where = np.full(int(self.rows.max(initial=-1)) + 1, -1)
        where[self.rows] = self.places
        found: IntArray = where[rows]
        return found


def pack(
    reviews: Reviews,
    until: IntArray | None = None,
    *,
    weight: FloatArray | None = None,
    dtype: type[np.float32] | type[np.float64] = np.float64,
) -> Packed:
    """Pack the reviews of a log.

    Parameters
    ----------
    until : int [m], optional
        Row numbers. Cards without one of them are left out, and so is all that comes after
        a card's last of them. By default everything is packed.
    weight : float [m], optional
        What the loss of each review in `until` counts; all other reviews count nothing.
    """
    order, lengths = _by_card(reviews.card, until)
    sizes = np.argsort(lengths, kind="stable")
    position = np.empty(len(lengths), np.int64)
    position[sizes] = np.arange(len(lengths))
    blocks = -(-len(lengths) // LANES)
    block_lengths = np.zeros(blocks, np.int64)
    # Cards are sorted by length: the last of a block is its longest.
    ends = np.minimum(np.arange(1, blocks + 1) * LANES, len(lengths)) - 1
    block_lengths[:] = lengths[sizes][ends]
    starts = np.cumsum(block_lengths) - block_lengths
    first = starts[position // LANES] * LANES + position % LANES  # place of a card's first review
    nth = np.arange(len(order)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    places = np.repeat(first, lengths) + nth * LANES
    total = int(block_lengths.sum())
    packed = aligned(total * FACTS * LANES, dtype).reshape(total, FACTS, LANES)
    packed[:, 1] = _FILLER_RATING
    place, lane = places // LANES, places % LANES
    packed[place, 0, lane] = reviews.elapsed[order]
    packed[place, 1, lane] = reviews.rating[order]
    if weight is not None and until is not None:
        weights = np.zeros(len(reviews))
        weights[until] = weight
        packed[place, 2, lane] = weights[order]
    return Packed(packed, starts, block_lengths, order, places)


def aligned(size: int, dtype: type[np.float32] | type[np.float64]) -> FloatArray:
    """Make an array of zeros that starts where the widest loads and stores want it to."""
    count = size * np.dtype(dtype).itemsize
    memory = np.zeros(count + _ALIGNMENT, np.uint8)
    first = -memory.ctypes.data % _ALIGNMENT
    numbers: FloatArray = memory[first : first + count].view(dtype)
    return numbers


def _by_card(card: IntArray, until: IntArray | None) -> tuple[IntArray, IntArray]:
    """Row numbers grouped by card and in time order, and how many each card has."""
    order = np.argsort(card, kind="stable")
    if len(order) == 0:
        return order, order
    grouped = card[order]
    begins = np.flatnonzero(np.r_[True, grouped[1:] != grouped[:-1]])
    lengths = np.diff(np.r_[begins, len(order)])
    if until is None:
        return order, lengths
    wanted = np.full(len(order), -1)
    wanted[until] = until
    last = np.maximum.reduceat(wanted[order], begins)
    kept = order <= np.repeat(last, lengths)
    lengths = np.add.reduceat(kept, begins, dtype=np.int64)
    return order[kept], lengths[lengths > 0]
