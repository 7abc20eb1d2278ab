"""Code that puts reviews in their places: loops that numpy would need a dozen passes for.

Card by card, ``cut`` finds how many reviews are needed, and ``fill`` writes those down.
"""

from __future__ import annotations

from srs_eval.engine.assembly import Assembly, Precision
from srs_eval.engine.layout import FACTS, LANES

CUT, FILL = "cut", "fill"


def arranging_code(precision: Precision) -> str:
    """Write the module for facts of a precision."""
    return _cut() + _fill(precision)


def _cut() -> str:
    """``needed[card]`` = reviews of the card up to its last wanted one."""
    code = Assembly(1, "double")
    last = code.memory(kind="i64")
    with code.loop("card", "0", "%cards") as card:
        begin = code.load("%begins", card, kind="i64")
        code.write(f"store i64 0, ptr {last}")
        with code.loop("review", "0", code.load("%lengths", card, kind="i64")) as nth:
            following = code.value(f"add nsw i64 {nth}, 1")
            row = code.load("%order", code.value(f"add nsw i64 {begin}, {nth}"), kind="i64")
            wanted = code.value(f"trunc i8 {code.load('%wanted', row, kind='i8')} to i1")
            before = code.value(f"load i64, ptr {last}")
            code.write(
                f"store i64 {code.value(f'select i1 {wanted}, i64 {following}, i64 {before}')}, "
                f"ptr {last}"
            )
        code.store(code.value(f"load i64, ptr {last}"), "%needed", card, kind="i64")
    arguments = "ptr %order, ptr %begins, ptr %lengths, i64 %cards, ptr %wanted, ptr %needed"
    return _function(CUT, arguments, code)


def _fill(precision: Precision) -> str:
    """Write the facts of the needed reviews, their row numbers and their places."""
    code = Assembly(1, precision)
    count = code.memory(kind="i64")
    code.write(f"store i64 0, ptr {count}")
    with code.loop("card", "0", "%cards") as card:
        begin = code.load("%begins", card, kind="i64")
        first_place = code.load("%places_of_cards", card, kind="i64")
        lane = code.value(f"urem i64 {first_place}, {LANES}")
        block = code.value(f"sub nsw i64 {first_place}, {lane}")
        first_fact = code.value(f"add nsw i64 {code.value(f'mul i64 {block}, {FACTS}')}, {lane}")
        with code.loop("review", "0", code.load("%needed", card, kind="i64")) as nth:
            row = code.load("%order", code.value(f"add nsw i64 {begin}, {nth}"), kind="i64")
            down = code.value(f"mul nsw i64 {nth}, {LANES * FACTS}")
            at = code.value(f"add nsw i64 {first_fact}, {down}")
            for number, fact in enumerate(_facts(code, row)):
                place = code.value(f"add nsw i64 {at}, {number * LANES}")
                code.store(fact, "%facts", place)
            done = code.value(f"load i64, ptr {count}")
            code.store(row, "%rows", done, kind="i64")
            further = code.value(f"mul nsw i64 {nth}, {LANES}")
            place = code.value(f"add nsw i64 {first_place}, {further}")
            code.store(place, "%places", done, kind="i64")
            code.write(f"store i64 {code.value(f'add nsw i64 {done}, 1')}, ptr {count}")
    arguments = (
        "ptr %order, ptr %begins, ptr %needed, ptr %places_of_cards, i64 %cards, "
        "ptr %elapsed, ptr %rating, ptr %weight, ptr %facts, ptr %rows, ptr %places"
    )
    return _function(FILL, arguments, code)


def _facts(code: Assembly, row: str) -> list[str]:
    rating = code.load("%rating", row, kind="i64")
    wide = [code.load(pointer, row, kind="double") for pointer in ("%elapsed", "%weight")]
    elapsed, weight = (
        [code.value(f"fptrunc double {number} to float") for number in wide]
        if code.precision == "float"
        else wide
    )
    return [elapsed, code.value(f"sitofp i64 {rating} to {code.precision}"), weight]


def _function(name: str, arguments: str, code: Assembly) -> str:
    arguments = arguments.replace("ptr ", "ptr noalias ")
    return f"define void @{name}({arguments}) {{\n{code.body.text()}\n  ret void\n}}\n"
