"""The kernel that predicts every review and writes down the state after it."""

from __future__ import annotations

import math

from srs_eval.engine.assembly import Precision
from srs_eval.engine.kernel_writer import KernelCode, KernelWriter, load_all, store_all
from srs_eval.engine.tracing import Traced


def walk_kernel(traced: Traced, precision: Precision) -> KernelCode:
    """Write the kernel; its vectors per place are p and the state after the review.

    p of a first review is NaN.
    """
    writer = KernelWriter(traced, (traced.p, *traced.step, *traced.init), precision)
    code = writer.code
    width = 1 + len(traced.states)
    state = code.memory(len(traced.states))
    with writer.block() as (start, length):
        writer.first_states(start, state)
        first = [code.load(state, index) for index in range(len(traced.states))]
        place = code.value(f"mul nsw i64 {start}, {width}")
        store_all(code, [code.constant(math.nan), *first], "%out", place)
        with code.loop("review", "1", length) as nth:
            review = code.value(f"add nsw i64 {start}, {nth}")
            known = load_all(code, traced.states, state)
            found = writer.compute((traced.p, *traced.step), review, known)
            after = [found[expression.number] for expression in traced.step]
            store_all(code, after, state)
            place = code.value(f"mul nsw i64 {review}, {width}")
            store_all(code, [found[traced.p.number], *after], "%out", place)
    return KernelCode(writer.finish(saturating=False), precision, outputs=width)
