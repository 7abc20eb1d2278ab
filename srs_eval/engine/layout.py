"""Reviews arranged for kernels: cards of similar length side by side, in blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from srs_eval.nouns import FloatArray, IntArray

# Cards side by side. In single precision they fill the widest registers, and the 64 bytes that
# loads and stores count on.
LANES = 16
FACTS = 3  # elapsed days, rating, weight

_ALIGNMENT = 64  # bytes


@dataclass(frozen=True, slots=True)
class Packed:
    """Reviews in blocks of `LANES` cards; within a block, review by review.

    Lanes beyond the last card, and places beyond the end of a card that is shorter than the
    longest of its block, hold reviews of weight 0.
    """

    reviews: FloatArray  # [places, 3, LANES]: Elapsed days, rating, weight
    # [blocks]: First place of each block, and how many places it has
    starts: IntArray
    lengths: IntArray
    rows: IntArray  # [n]: Row number of each review that is packed
    places: IntArray  # [n]: Where it is: place * LANES + lane

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


def aligned(size: int, dtype: type[np.float32] | type[np.float64]) -> FloatArray:
    """Make an array of zeros that starts where the widest loads and stores want it to."""
    count = size * np.dtype(dtype).itemsize
    memory = np.zeros(count + _ALIGNMENT, np.uint8)
    first = -memory.ctypes.data % _ALIGNMENT
    numbers: FloatArray = memory[first : first + count].view(dtype)
    return numbers
