"""Pack the reviews of a log for the kernels."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_eval.cards import CardRows, rows_by_card, rows_of_whole_log, stable_order
from srs_eval.engine.assembly import Assembly, Precision
from srs_eval.engine.layout import FACTS, LANES, Packed, aligned
from srs_eval.engine.machine import Compiled
from srs_eval.nouns import FloatArray, IntArray, Reviews

_FILLER_RATING = 3
_ADDRESS, _COUNT = ctypes.c_void_p, ctypes.c_int64


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
    counts; all other reviews count nothing.
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
    if weight is not None and until is not None:
        weights[until] = weight
    total = int(lengths.sum())
    facts = aligned(total * FACTS * LANES, dtype)
    packed = facts.reshape(total, FACTS, LANES)
    packed[:, 1] = _FILLER_RATING
    where = np.full(len(reviews), -1)
    columns = (
        np.ascontiguousarray(reviews.elapsed, np.float64),
        np.ascontiguousarray(reviews.rating, np.int64),
        weights,
    )
    _fill("float" if dtype is np.float32 else "double")(
        _address(by_length),
        len(by_length),
        *(_address(array) for array in (starts, cards.begins, needed, cards.order)),
        *(_address(array) for array in (*columns, facts, where)),
    )
    return Packed(packed, starts, lengths, where)


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
    return Compiled(_code(precision)).function("fill", _ADDRESS, _COUNT, *[_ADDRESS] * 9)


def _code(precision: Precision) -> str:
    """Write the loop that puts needed reviews in their places: numpy would need a dozen passes."""
    code = Assembly(1, precision)
    with code.loop("lane", "0", "%cards") as index:
        lane = code.value(f"urem i64 {index}, {LANES}")
        block = code.value(f"udiv i64 {index}, {LANES}")
        start = code.load("%starts", block, kind="i64")
        card = code.load("%by_length", index, kind="i64")
        begin = code.load("%begins", card, kind="i64")
        with code.loop("review", "0", code.load("%needed", card, kind="i64")) as nth:
            row = code.load("%order", code.plus(begin, nth), kind="i64")
            place = code.plus(start, nth)
            at = code.plus(code.times(place, FACTS * LANES), lane)
            for number, fact in enumerate(_facts(code, row)):
                code.store(fact, "%facts", code.plus(at, number * LANES))
            code.store(code.plus(code.times(place, LANES), lane), "%where", row, kind="i64")
    arguments = (
        "ptr %by_length, i64 %cards, ptr %starts, ptr %begins, ptr %needed, ptr %order, "
        "ptr %elapsed, ptr %rating, ptr %weight, ptr %facts, ptr %where"
    ).replace("ptr ", "ptr noalias ")
    return f"define void @fill({arguments}) {{\n{code.body.text()}\n  ret void\n}}\n"


def _facts(code: Assembly, row: str) -> list[str]:
    rating = code.load("%rating", row, kind="i64")
    wide = [code.load(pointer, row, kind="double") for pointer in ("%elapsed", "%weight")]
    elapsed, weight = (
        [code.value(f"fptrunc double {number} to float") for number in wide]
        if code.precision == "float"
        else wide
    )
    return [elapsed, code.value(f"sitofp i64 {rating} to {code.precision}"), weight]
