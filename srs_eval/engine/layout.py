"""Reviews arranged for kernels: cards of similar length side by side, in blocks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from srs_eval.nouns import FloatArray, IntArray

# Cards side by side. In single precision they fill the widest registers, and the 64 bytes that
# loads and stores count on.
LANES = 16
FACTS = 3  # elapsed days, rating, weight

_ALIGNMENT = 64  # bytes


@dataclass(frozen=True)
class Packed:
    """Reviews in blocks of `LANES` cards; within a block, review by review.

    Lanes beyond the last card, and places beyond the end of a card that is shorter than the
    longest of its block, hold reviews of weight 0.
    """

    reviews: FloatArray  # [places, 3, LANES]: Elapsed days, rating, weight
    # [blocks]: First place of each block, and how many places it has
    starts: IntArray
    lengths: IntArray
    # [reviews of the log]: Where each review is, place * LANES + lane; -1 if it is not packed
    where: IntArray

    @cached_property
    def longest(self) -> int:
        """Number of reviews of the longest card."""
        return int(self.lengths.max(initial=0))

    @cached_property
    def addresses(self) -> tuple[int, int, int]:
        """Where `reviews`, `starts` and `lengths` begin in memory."""
        return self.reviews.ctypes.data, self.starts.ctypes.data, self.lengths.ctypes.data


def aligned(size: int, dtype: type[np.float32] | type[np.float64]) -> FloatArray:
    """Make an array of zeros that starts where the widest loads and stores want it to."""
    count = size * np.dtype(dtype).itemsize
    memory = np.zeros(count + _ALIGNMENT, np.uint8)
    first = -memory.ctypes.data % _ALIGNMENT
    numbers: FloatArray = memory[first : first + count].view(dtype)
    return numbers
