"""exp and log on vectors, as code for the compiler.

The mathematics library works on one number at a time, which would undo the point of
vectors. Both functions reduce their argument to a small interval by the bits of the number,
and sum a series there: Taylor's for exp, that of 2 artanh(f / (2 + f)) for log. Errors are
below 2 units in the last place.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

from srs_eval.engine.assembly import Assembly, Precision


@dataclass(frozen=True, slots=True)
class _Format:
    """How a floating-point number is laid out, and how many terms reach its precision."""

    integer: str
    fraction_bits: int
    bias: int
    exp_terms: int
    log_terms: int
    # ln 2 in two parts; multiples of the first are exact.
    ln2_high: float
    ln2_low: float


_LN2_HIGH_32 = 0.693359375
_LN2_HIGH_64 = float.fromhex("0x1.62e42feep-1")
_LN2_TAIL_64 = 1.90821492927058770002e-10

_FORMATS: dict[Precision, _Format] = {
    "float": _Format("i32", 23, 127, 7, 5, _LN2_HIGH_32, math.log(2) - _LN2_HIGH_32),
    "double": _Format("i64", 52, 1023, 13, 11, _LN2_HIGH_64, _LN2_TAIL_64),
}


def exp_function(lanes: int, precision: Precision) -> str:
    """Write exp; results stay within the range of normal numbers, NaN stays NaN."""
    code, layout, whole = _begin(lanes, precision)
    most = math.floor((layout.bias - 1) * math.log(2))
    x = _clip(code, "%x", -most, most)
    # Adding and subtracting 1.5 * 2^fraction_bits rounds to the nearest whole number, and
    # leaves it in the lowest bits.
    magic = 1.5 * 2.0**layout.fraction_bits
    shifted = code.add(code.multiply(x, code.constant(1 / math.log(2))), code.constant(magic))
    n = code.value(f"fsub {code.real} {shifted}, {code.constant(magic)}")
    r = code.add(x, code.multiply(n, code.constant(-layout.ln2_high)))
    r = code.add(r, code.multiply(n, code.constant(-layout.ln2_low)))
    total = code.constant(1 / math.factorial(layout.exp_terms))
    for power in range(layout.exp_terms - 1, -1, -1):
        total = code.add(code.multiply(total, r), code.constant(1 / math.factorial(power)))
    bits = code.value(f"bitcast {code.real} {shifted} to {whole}")
    # The magic number's own bits fall out at the top.
    biased = code.value(f"add {whole} {bits}, {_whole(code, layout, layout.bias)}")
    scale = code.value(f"shl {whole} {biased}, {_whole(code, layout, layout.fraction_bits)}")
    power_of_2 = code.value(f"bitcast {whole} {scale} to {code.real}")
    return _function("exp", code, code.multiply(total, power_of_2))


def log_function(lanes: int, precision: Precision, *, saturating: bool) -> str:
    """Write log.

    If `saturating`, everything up to the smallest normal number is taken for it, so that results
    and slopes are finite. Otherwise log(0) is -inf and log of less is NaN. NaN stays NaN.
    """
    code, layout, whole = _begin(lanes, precision)
    smallest = 2.0 ** (1 - layout.bias)
    x = _clip(code, "%x", smallest, None) if saturating else "%x"
    bits = code.value(f"bitcast {code.real} {x} to {whole}")
    # Powers of 2 are split off so that the rest lies between sqrt(1/2) and sqrt(2).
    root = _bits_of(math.sqrt(0.5), precision)
    distance = code.value(f"sub {whole} {bits}, {_whole(code, layout, root)}")
    exponent = code.value(f"ashr {whole} {distance}, {_whole(code, layout, layout.fraction_bits)}")
    removed = code.value(f"shl {whole} {exponent}, {_whole(code, layout, layout.fraction_bits)}")
    rest_bits = code.value(f"sub {whole} {bits}, {removed}")
    rest = code.value(f"bitcast {whole} {rest_bits} to {code.real}")
    f = code.add(rest, code.constant(-1.0))
    s = code.value(f"fdiv {code.real} {f}, {code.add(f, code.constant(2.0))}")
    z = code.multiply(s, s)
    total = code.constant(2.0 / (2 * layout.log_terms + 1))
    for term in range(layout.log_terms - 1, 0, -1):
        total = code.add(code.multiply(total, z), code.constant(2.0 / (2 * term + 1)))
    # 2 s = f - f s: f is exact, so that results near 0 are as precise as any.
    tail = code.multiply(s, code.add(code.multiply(total, z), code.value(f"fneg {code.real} {f}")))
    n = code.value(f"sitofp {whole} {exponent} to {code.real}")
    low = code.add(tail, code.multiply(n, code.constant(layout.ln2_low)))
    result = code.add(code.multiply(n, code.constant(layout.ln2_high)), code.add(f, low))
    if saturating:
        # Its bits are those of a number like any other.
        missing = code.value(f"fcmp uno {code.real} %x, %x")
        result = code.select(missing, "%x", result)
    else:
        result = _log_of_nothing(code, result)
    return _function("log", code, result)


def _log_of_nothing(code: Assembly, result: str) -> str:
    """Correct log(0) and the logarithms of negative numbers, of NaN and of infinity."""
    zero = code.constant(0.0)
    for condition, value in (
        (f"oeq {code.real} %x, {zero}", code.constant(-math.inf)),
        (f"oeq {code.real} %x, {code.constant(math.inf)}", code.constant(math.inf)),
        (f"ult {code.real} %x, {zero}", code.constant(math.nan)),
    ):
        result = code.select(code.value(f"fcmp {condition}"), value, result)
    return result


def _begin(lanes: int, precision: Precision) -> tuple[Assembly, _Format, str]:
    layout = _FORMATS[precision]
    whole = layout.integer if lanes == 1 else f"<{lanes} x {layout.integer}>"
    return Assembly(lanes, precision), layout, whole


def _function(name: str, code: Assembly, result: str) -> str:
    body = code.body.text()
    return (
        f"define internal {code.real} @{name}.{code.lanes}({code.real} %x) alwaysinline {{\n"
        f"{body}\n  ret {code.real} {result}\n}}\n"
    )


def _clip(code: Assembly, x: str, low: float, high: float | None) -> str:
    """Move into bounds; NaN stays."""
    bounds = [(low, "ogt")] + ([(high, "olt")] if high is not None else [])
    for bound, test in bounds:
        constant = code.constant(bound)
        outside = code.value(f"fcmp {test} {code.real} {constant}, {x}")
        x = code.select(outside, constant, x)
    return x


def _whole(code: Assembly, layout: _Format, number: int) -> str:
    if code.lanes == 1:
        return str(number)
    return "<" + ", ".join([f"{layout.integer} {number}"] * code.lanes) + ">"


def _bits_of(value: float, precision: Precision) -> int:
    if precision == "float":
        return int(struct.unpack("<i", struct.pack("<f", value))[0])
    return int(struct.unpack("<q", struct.pack("<d", value))[0])
