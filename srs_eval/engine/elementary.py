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
class _Format:
    """How a floating-point number is laid out, and how many terms reach its precision."""

    bits: int
    fraction_bits: int
    bias: int
    exp_terms: int
    log_terms: int
    # ln 2 in two parts; multiples of the first are exact.
    ln2_high: float
    ln2_low: float
    root: int  # The bits of sqrt(1/2)


_LN2_HIGH_32 = 0.693359375
_LN2_HIGH_64 = float.fromhex("0x1.62e42feep-1")
_LN2_TAIL_64 = 1.90821492927058770002e-10
_ROOT_32 = int(np.float32(math.sqrt(0.5)).view(np.int32))
_ROOT_64 = int(np.float64(math.sqrt(0.5)).view(np.int64))

_FORMATS = {
    "float": _Format(32, 23, 127, 7, 5, _LN2_HIGH_32, math.log(2) - _LN2_HIGH_32, _ROOT_32),
    "double": _Format(64, 52, 1023, 13, 11, _LN2_HIGH_64, _LN2_TAIL_64, _ROOT_64),
}


def exp(code: Writer, argument: ir.Value) -> ir.Value:
    """Write exp; results stay within the range of normal numbers, NaN stays NaN."""
    layout, builder, constant = _FORMATS[code.precision], code.builder, code.constant
    whole = code.vector(ir.IntType(layout.bits))
    most = math.floor((layout.bias - 1) * math.log(2))
    x = _at_most(code, _at_least(code, argument, -most), most)
    # Adding and subtracting 1.5 * 2^fraction_bits rounds to the nearest whole number, and
    # leaves it in the lowest bits.
    magic = constant(1.5 * 2.0**layout.fraction_bits)
    shifted = code.add(code.multiply(x, constant(1 / math.log(2))), magic)
    n = builder.fsub(shifted, magic)
    r = code.add(x, code.multiply(n, constant(-layout.ln2_high)))
    r = code.add(r, code.multiply(n, constant(-layout.ln2_low)))
    total = constant(1 / math.factorial(layout.exp_terms))
    for power in range(layout.exp_terms - 1, -1, -1):
        total = code.add(code.multiply(total, r), constant(1 / math.factorial(power)))
    bits = builder.bitcast(shifted, whole)
    # The magic number's own bits fall out at the top.
    biased = builder.add(bits, ir.Constant(whole, layout.bias))
    scale = builder.shl(biased, ir.Constant(whole, layout.fraction_bits))
    return code.multiply(total, builder.bitcast(scale, code.type))


def log(code: Writer, argument: ir.Value) -> ir.Value:
    """Write log.

    If the writer is saturating, everything up to the smallest normal number is taken for it, so
    that results and slopes are finite. Otherwise log(0) is -inf and log of less is NaN. NaN stays
    NaN.
    """
    layout, builder, constant = _FORMATS[code.precision], code.builder, code.constant
    whole = code.vector(ir.IntType(layout.bits))
    x = _at_least(code, argument, 2.0 ** (1 - layout.bias)) if code.saturating else argument
    bits = builder.bitcast(x, whole)
    # Powers of 2 are split off so that the rest lies between sqrt(1/2) and sqrt(2).
    distance = builder.sub(bits, ir.Constant(whole, layout.root))
    exponent = builder.ashr(distance, ir.Constant(whole, layout.fraction_bits))
    removed = builder.shl(exponent, ir.Constant(whole, layout.fraction_bits))
    rest = builder.bitcast(builder.sub(bits, removed), code.type)
    f = code.add(rest, constant(-1.0))
    s = builder.fdiv(f, code.add(f, constant(2.0)))
    z = code.multiply(s, s)
    total = constant(2.0 / (2 * layout.log_terms + 1))
    for term in range(layout.log_terms - 1, 0, -1):
        total = code.add(code.multiply(total, z), constant(2.0 / (2 * term + 1)))
    # 2 s = f - f s: f is exact, so that results near 0 are as precise as any.
    tail = code.multiply(s, code.add(code.multiply(total, z), builder.fneg(f)))
    n = builder.sitofp(exponent, code.type)
    low = code.add(tail, code.multiply(n, constant(layout.ln2_low)))
    result = code.add(code.multiply(n, constant(layout.ln2_high)), code.add(f, low))
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


def _at_least(code: Writer, x: ir.Value, low: float) -> ir.Value:
    """Raise to a bound; NaN stays."""
    bound = code.constant(low)
    return code.builder.select(code.builder.fcmp_ordered(">", bound, x), bound, x)


def _at_most(code: Writer, x: ir.Value, high: float) -> ir.Value:
    """Lower to a bound; NaN stays."""
    bound = code.constant(high)
    return code.builder.select(code.builder.fcmp_ordered("<", bound, x), bound, x)
