"""exp and log on vectors, as code for the compiler.

The mathematics library works on one number at a time, which would undo the point of
vectors. Both functions reduce their argument to a small interval by the bits of the number,
and sum a series there: Taylor's for exp, that of 2 artanh(f / (2 + f)) for log. Errors are
below 2 units in the last place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from llvmlite import ir

if TYPE_CHECKING:
    from srs_eval.engine.writer import Writer


@dataclass(frozen=True, slots=True)
class _Series:
    """How many terms reach a precision."""

    exp_terms: int
    log_terms: int
    # ln 2 in two parts; multiples of the first are exact.
    ln2_high: float
    ln2_low: float


_LN2_HIGH_32 = 0.693359375
_LN2_HIGH_64 = float.fromhex("0x1.62e42feep-1")
_LN2_TAIL_64 = 1.90821492927058770002e-10
_SERIES = {
    "float32": _Series(7, 5, _LN2_HIGH_32, math.log(2) - _LN2_HIGH_32),
    "float64": _Series(13, 11, _LN2_HIGH_64, _LN2_TAIL_64),
}


def exp(code: Writer, argument: ir.Value) -> ir.Value:
    """Write exp; results stay within the range of normal numbers, NaN stays NaN."""
    series, builder, constant = _SERIES[code.precision], code.builder, code.constant
    layout = np.finfo(code.precision)
    whole = code.vector(ir.IntType(layout.bits))
    most = math.floor((layout.maxexp - 2) * math.log(2))
    x = _clipped(code, "<", constant(-most), argument)
    x = _clipped(code, ">", constant(most), x)
    # Adding and subtracting 1.5 * 2^fraction_bits rounds to the nearest whole number, and
    # leaves it in the lowest bits.
    magic = constant(1.5 * 2.0**layout.nmant)
    shifted = code.add(code.multiply(x, constant(1 / math.log(2))), magic)
    n = builder.fsub(shifted, magic)
    r = code.add(x, code.multiply(n, constant(-series.ln2_high)))
    r = code.add(r, code.multiply(n, constant(-series.ln2_low)))
    total = constant(1 / math.factorial(series.exp_terms))
    for power in range(series.exp_terms - 1, -1, -1):
        total = code.add(code.multiply(total, r), constant(1 / math.factorial(power)))
    bits = builder.bitcast(shifted, whole)
    # The magic number's own bits fall out at the top.
    biased = builder.add(bits, ir.Constant(whole, layout.maxexp - 1))
    scale = builder.shl(biased, ir.Constant(whole, layout.nmant))
    return code.multiply(total, builder.bitcast(scale, code.type))


def log(code: Writer, argument: ir.Value) -> ir.Value:
    """Write log.

    If the writer is saturating, everything up to the smallest normal number is taken for it, so
    that results and slopes are finite. Otherwise log(0) is -inf and log of less is NaN. NaN stays
    NaN.
    """
    series, builder, constant = _SERIES[code.precision], code.builder, code.constant
    layout = np.finfo(code.precision)
    whole = code.vector(ir.IntType(layout.bits))
    x = argument
    if code.saturating:
        x = _clipped(code, "<", constant(2.0 ** (2 - layout.maxexp)), argument)
    bits = builder.bitcast(x, whole)
    # Powers of 2 are split off so that the rest lies between sqrt(1/2) and sqrt(2).
    root = np.array(math.sqrt(0.5), code.precision).view(f"i{layout.bits // 8}")
    distance = builder.sub(bits, ir.Constant(whole, int(root)))
    exponent = builder.ashr(distance, ir.Constant(whole, layout.nmant))
    removed = builder.shl(exponent, ir.Constant(whole, layout.nmant))
    rest = builder.bitcast(builder.sub(bits, removed), code.type)
    f = code.add(rest, constant(-1.0))
    s = builder.fdiv(f, code.add(f, constant(2.0)))
    z = code.multiply(s, s)
    total = constant(2.0 / (2 * series.log_terms + 1))
    for term in range(series.log_terms - 1, 0, -1):
        total = code.add(code.multiply(total, z), constant(2.0 / (2 * term + 1)))
    # 2 s = f - f s: f is exact, so that results near 0 are as precise as any.
    tail = code.multiply(s, code.add(code.multiply(total, z), builder.fneg(f)))
    n = builder.sitofp(exponent, code.type)
    low = code.add(tail, code.multiply(n, constant(series.ln2_low)))
    result = code.add(code.multiply(n, constant(series.ln2_high)), code.add(f, low))
    if code.saturating:  # NaN has the bits of a number like any other
        return builder.select(builder.fcmp_unordered("uno", argument, argument), argument, result)
    zero, infinity = constant(0.0), constant(math.inf)
    for condition, value in (
        (builder.fcmp_ordered("==", argument, zero), constant(-math.inf)),
        (builder.fcmp_ordered("==", argument, infinity), infinity),
        (builder.fcmp_unordered("<", argument, zero), constant(math.nan)),
    ):
        result = builder.select(condition, value, result)
    return result


def _clipped(code: Writer, order: str, bound: ir.Value, x: ir.Value) -> ir.Value:
    """Replace what is beyond a bound by the bound; NaN stays."""
    return code.builder.select(code.builder.fcmp_ordered(order, x, bound), bound, x)
