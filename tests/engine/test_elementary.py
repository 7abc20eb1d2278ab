"""exp and log of kernels, against numpy's in the longest precision there is."""

import math

import numpy as np
import pytest

from srs_eval.engine.elementary import exp_function, log_function
from srs_eval.engine.kernel_writer import KernelCode
from srs_eval.engine.machine import CompiledKernel
from srs_eval.engine.packing import LANES, Packed, aligned

TYPES = {"float": np.float32, "double": np.float64}
LONG = np.finfo(np.longdouble).precision > np.finfo(np.float64).precision
FUNCTIONS = {
    "exp": lambda precision: exp_function(LANES, precision),
    "log": lambda precision: log_function(LANES, precision, saturating=False),
    "saturating": lambda precision: log_function(LANES, precision, saturating=True),
}


def function(name, precision):
    """Compile a kernel that does nothing but call a function; return it on arrays."""
    vector = f"<{LANES} x {precision}>"
    called = "exp" if name == "exp" else "log"
    text = f"""{FUNCTIONS[name](precision)}
define void @kernel(ptr %w, ptr %x, i64 %blocks, ptr %s, ptr %l, ptr %scratch, ptr %out) {{
  %n = load i64, ptr %l
  br label %head
head:
  %i = phi i64 [0, %0], [%next, %body]
  %within = icmp slt i64 %i, %n
  br i1 %within, label %body, label %end
body:
  %from = getelementptr {vector}, ptr %x, i64 %i
  %to = getelementptr {vector}, ptr %out, i64 %i
  %value = load {vector}, ptr %from
  %result = call {vector} @{called}.{LANES}({vector} %value)
  store {vector} %result, ptr %to
  %next = add i64 %i, 1
  br label %head
end:
  ret void
}}
"""
    kernel = CompiledKernel(KernelCode(text, precision, outputs=1))

    def call(x):
        vectors = -(-len(x) // LANES)
        given, out = (aligned(vectors * LANES, TYPES[precision]) for _ in range(2))
        given[: len(x)] = x
        counts = np.array([vectors])
        kernel(np.zeros(1), Packed(given, counts - vectors, counts, counts), out)
        return out[: len(x)].copy()

    return call


def ulps(name, x):
    """Errors in units of the last place of what is exact."""
    found = function(name, "float" if x.dtype == np.float32 else "double")(x)
    exact = (np.exp if name == "exp" else np.log)(x.astype(np.longdouble))
    return np.abs(found.astype(np.longdouble) - exact) / np.spacing(np.abs(exact).astype(x.dtype))


def arguments(name, real, rng):
    """Numbers from everywhere in the range of a function, and more where it is delicate."""
    finite = np.finfo(real)
    if name == "exp":
        most = 87.0 if real == np.float32 else 708.0
        return [rng.uniform(-a, a, 20_000) for a in (most, 10.0, 1.0, 1e-3, 1e-12)]
    bits = rng.integers(0, finite.maxexp - finite.minexp, 40_000) + finite.minexp
    near_1 = [1 + rng.uniform(-a, a, 20_000) for a in (0.5, 1e-2, 1e-5)]
    return [np.ldexp(rng.uniform(1, 2, 40_000), bits), *near_1]


@pytest.mark.skipif(not LONG, reason="numpy has no numbers longer than 64 bits here")
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("precision", TYPES)
def test_functions_are_right_to_2_units_in_the_last_place(precision, name):
    real = TYPES[precision]
    x = np.concatenate(arguments(name, real, np.random.default_rng(0))).astype(real)
    if name != "exp":
        x = x[(x != 1) & (x >= np.finfo(real).tiny) & (x < np.inf)]
    assert ulps(name, x).max() <= 2


@pytest.mark.parametrize("precision", TYPES)
def test_exp_and_log_at_the_ends_of_their_range(precision):
    limits = np.finfo(TYPES[precision])
    tiny, subnormal = limits.tiny, limits.smallest_subnormal
    exp, log, saturating = (function(name, precision) for name in FUNCTIONS)
    one, other, low, lower, high, higher, nothing = exp(
        [0.0, -0.0, -2000.0, -np.inf, 2000.0, np.inf, np.nan]
    )
    assert one == other == 1.0
    assert tiny <= low == lower < 10 * tiny
    assert limits.max / 10 < high == higher < np.inf
    assert np.isnan(nothing)
    assert log([1.0, 0.0, -0.0, np.inf]).tolist() == [0.0, -np.inf, -np.inf, np.inf]
    assert np.isnan(log([-1e-3, -np.inf, np.nan])).all()
    small = log([subnormal, tiny / 2, tiny])
    assert (np.abs(small - math.log(tiny)) < 1).all()
    assert (np.diff(small) >= 0).all()
    found = saturating([0.0, -0.0, -1.0, -np.inf, subnormal, tiny])
    np.testing.assert_allclose(found, math.log(tiny), rtol=1e-6)
    exact, most, nothing = saturating([1.0, np.inf, np.nan])
    assert exact == 0.0
    assert math.log(limits.max) <= most < 1.01 * math.log(limits.max)
    assert np.isnan(nothing)
