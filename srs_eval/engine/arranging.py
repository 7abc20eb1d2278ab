"""Code that puts reviews in their places: a loop that numpy would need a dozen passes for."""

from __future__ import annotations

from srs_eval.engine.assembly import Assembly, Precision
from srs_eval.engine.layout import FACTS, LANES

FILL = "fill"


def arranging_code(precision: Precision) -> str:
    """Write the module that writes down the facts of the needed reviews, and where they are."""
    code = Assembly(1, precision)
    with code.loop("lane", "0", "%cards") as index:
        lane = code.value(f"urem i64 {index}, {LANES}")
        block = code.value(f"udiv i64 {index}, {LANES}")
        start = code.load("%starts", block, kind="i64")
        card = code.load("%by_length", index, kind="i64")
        begin = code.load("%begins", card, kind="i64")
        with code.loop("review", "0", code.load("%needed", card, kind="i64")) as nth:
            row = code.load("%order", code.value(f"add nsw i64 {begin}, {nth}"), kind="i64")
            place = code.value(f"add nsw i64 {start}, {nth}")
            first = code.value(f"mul nsw i64 {place}, {FACTS * LANES}")
            at = code.value(f"add nsw i64 {first}, {lane}")
            for number, fact in enumerate(_facts(code, row)):
                code.store(fact, "%facts", code.value(f"add nsw i64 {at}, {number * LANES}"))
            where = code.value(f"add nsw i64 {code.value(f'mul nsw i64 {place}, {LANES}')}, {lane}")
            code.store(where, "%where", row, kind="i64")
    arguments = (
        "ptr %by_length, i64 %cards, ptr %starts, ptr %begins, ptr %needed, ptr %order, "
        "ptr %elapsed, ptr %rating, ptr %weight, ptr %facts, ptr %where"
    ).replace("ptr ", "ptr noalias ")
    return f"define void @{FILL}({arguments}) {{\n{code.body.text()}\n  ret void\n}}\n"


def _facts(code: Assembly, row: str) -> list[str]:
    rating = code.load("%rating", row, kind="i64")
    wide = [code.load(pointer, row, kind="double") for pointer in ("%elapsed", "%weight")]
    elapsed, weight = (
        [code.value(f"fptrunc double {number} to float") for number in wide]
        if code.precision == "float"
        else wide
    )
    return [elapsed, code.value(f"sitofp i64 {rating} to {code.precision}"), weight]
