"""Reviews arranged for kernels: cards of similar length side by side, in blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from srs_eval.data.cards import CardRows, rows_by_card, rows_of_whole_log, stable_order
from srs_eval.data.reviews import FloatArray, IntArray, Reviews
from srs_eval.engine.machine import compiled_function
from srs_eval.engine.writer import DOUBLE, POINTER, WHOLE, Precision, Writer

# Cards side by side. In single precision they fill the widest registers, and the 64 bytes that
# loads and stores count on.
LANES = 16
FACTS = 3  # elapsed days, rating, weight

_ALIGNMENT = 64  # bytes
_FILLER_RATING = 3


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
    def precision(self) -> Precision:
        """What the numbers of the reviews are."""
        return "float32" if self.reviews.dtype == np.float32 else "float64"

    @cached_property
    def longest(self) -> int:
        """Number of reviews of the longest card."""
        return int(self.lengths.max(initial=0))

    @cached_property
    def addresses(self) -> tuple[int, int, int, int]:
        """What a kernel reads: where `reviews` are, how many blocks, `starts` and `lengths`."""
        starts, lengths = _address(self.starts), _address(self.lengths)
        return _address(self.reviews), len(self.starts), starts, lengths


def aligned(size: int, precision: Precision) -> FloatArray:
    """Make an array, not filled, that starts where the widest loads and stores want it to."""
    memory: FloatArray = np.empty(size + _ALIGNMENT // 4, precision)
    first = -memory.ctypes.data % _ALIGNMENT // memory.itemsize
    return memory[first : first + size]


def pack(
    reviews: Reviews,
    until: IntArray | None = None,
    *,
    weight: FloatArray | None = None,
    dtype: type[np.float32] | type[np.float64] = np.float64,
    cards: CardRows | None = None,
) -> Packed:
    """Pack the reviews of a log; `cards` are the rows of each card, if they are known.

    Cards without one of the rows `until` are left out, and so is all that comes after a card's last
    of them; by default everything is packed. `weight` is what the loss of each review in `until`
    counts, 1 by default; all other reviews count nothing.
    """
    if until is None:
        cards = rows_by_card(reviews.card) if cards is None else cards
        needed = cards.lengths
    else:
        cards = rows_of_whole_log(reviews.card) if cards is None else cards
        if len(until) and not 0 <= until.min() <= until.max() < len(reviews):
            raise IndexError(
                f"rows from {until.min()} to {until.max()}, in a log of {len(reviews)} reviews"
            )
        needed = np.zeros(len(cards.lengths), np.int64)
        np.maximum.at(needed, cards.number[until], cards.nth[until] + 1)
    by_length, starts, lengths = _blocks(needed)
    weights = np.zeros(len(reviews))
    if until is not None:
        weights[until] = 1.0 if weight is None else weight
    precision: Precision = "float32" if dtype is np.float32 else "float64"
    facts = aligned(int(lengths.sum()) * FACTS * LANES, precision).reshape(-1, FACTS, LANES)
    facts[:] = np.array([0, _FILLER_RATING, 0], dtype)[:, None]
    where = np.full(len(reviews), -1)
    columns = (
        np.ascontiguousarray(reviews.elapsed, np.float64),
        np.ascontiguousarray(reviews.rating, np.int64),
        weights,
    )
    _fill(precision)(
        len(by_length),
        *(_address(each) for each in (by_length, starts, cards.begins, needed, cards.order)),
        *(_address(each) for each in (*columns, facts, where)),
    )
    return Packed(facts, starts, lengths, where)


def _blocks(needed: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Sort the cards that have reviews by length into blocks.

    Returns their numbers in that order, and `starts` and `lengths` of `Packed`.
    """
    empty = int(np.count_nonzero(needed == 0))
    by_length = stable_order(needed)[empty:]
    # The last card of a block is its longest.
    lasts = np.minimum(np.arange(LANES, len(by_length) + LANES, LANES), len(by_length)) - 1
    lengths: IntArray = needed[by_length[lasts]]
    return by_length, np.cumsum(lengths) - lengths, lengths


def _address(array: NDArray[Any]) -> int:
    assert array.flags.c_contiguous
    return int(array.ctypes.data)


@cache
def _fill(precision: Precision) -> Callable[..., None]:
    """Compile the loop that puts needed reviews in their places: numpy needs a dozen passes."""
    kind = ir.FunctionType(ir.VoidType(), [WHOLE, *[POINTER] * 10])
    function = ir.Function(ir.Module(), kind, "fill")
    cards, by_length, starts, begins, needed, order, *columns, facts, where = function.args
    builder = ir.IRBuilder(function.append_basic_block())
    code = Writer(builder, precision, 1, saturating=False)
    for argument in function.args[1:]:
        argument.attributes.add("noalias")
    with code.loop(0, cards) as index:
        lane = builder.urem(index, WHOLE(LANES))
        start = code.load(starts, builder.udiv(index, WHOLE(LANES)), WHOLE)
        card = code.load(by_length, index, WHOLE)
        begin = code.load(begins, card, WHOLE)
        with code.loop(0, code.load(needed, card, WHOLE)) as nth:
            row = code.load(order, code.plus(begin, nth), WHOLE)
            place = code.plus(start, nth)
            first = code.plus(code.times(place, FACTS * LANES), lane)
            elapsed, weight = (code.load(columns[number], row, DOUBLE) for number in (0, 2))
            rating = builder.sitofp(code.load(columns[1], row, WHOLE), code.type)
            values = (code.narrowed(elapsed), rating, code.narrowed(weight))
            for number, value in enumerate(values):
                code.store(value, facts, code.plus(first, number * LANES))
            code.store(code.plus(code.times(place, LANES), lane), where, row)
    builder.ret_void()
    return compiled_function(function)
