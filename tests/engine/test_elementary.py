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


def ulps(found, exact):
    """Errors in units of the last place of what is exact."""
    spacing = np.spacing(np.abs(exact).astype(found.dtype)).astype(np.longdouble)
    return np.abs(found.astype(np.longdouble) - exact) / spacing


def exact(name, x):
    return getattr(np, name)(x.astype(np.longdouble))


@pytest.mark.skipif(not LONG, reason="numpy has no numbers longer than 64 bits here")
@pytest.mark.parametrize("precision", TYPES)
def test_exp_is_right_to_2_units_in_the_last_place(precision):
    rng = np.random.default_rng(0)
    most = 87.0 if precision == "float" else 708.0
    ranges = (most, 10.0, 1.0, 1e-3, 1e-12)
    x = np.concatenate([rng.uniform(-a, a, 20_000) for a in ranges]).astype(TYPES[precision])
    assert ulps(function("exp", precision)(x), exact("exp", x)).max() <= 2


@pytest.mark.skipif(not LONG, reason="numpy has no numbers longer than 64 bits here")
@pytest.mark.parametrize("name", ["log", "saturating"])
@pytest.mark.parametrize("precision", TYPES)
def test_log_is_right_to_2_units_in_the_last_place(precision, name):
    rng = np.random.default_rng(1)
    real = TYPES[precision]
    finite = np.finfo(real)
    bits = rng.integers(0, finite.maxexp - finite.minexp, 40_000) + finite.minexp
    everywhere = np.ldexp(rng.uniform(1, 2, 40_000), bits)
    near_1 = [1 + rng.uniform(-a, a, 20_000) for a in (0.5, 1e-2, 1e-5)]
    x = np.concatenate([everywhere, *near_1]).astype(real)
    x = x[(x != 1) & (x >= finite.tiny) & (x < np.inf)]
    assert ulps(function(name, precision)(x), exact("log", x)).max() <= 2


@pytest.mark.parametrize("precision", TYPES)
def test_exp_and_log_are_exact_where_they_can_be(precision):
    assert function("exp", precision)([0.0, -0.0]).tolist() == [1.0, 1.0]
    assert function("log", precision)([1.0]).tolist() == [0.0]
    assert function("saturating", precision)([1.0]).tolist() == [0.0]


@pytest.mark.parametrize("precision", TYPES)
def test_exp_stays_among_normal_numbers_and_keeps_nan(precision):
    limits = np.finfo(TYPES[precision])
    low, lower, high, higher, nothing = function("exp", precision)(
        [-2000.0, -np.inf, 2000.0, np.inf, np.nan]
    )
    assert limits.tiny <= low == lower < 10 * limits.tiny
    assert limits.max / 10 < high == higher < np.inf
    assert np.isnan(nothing)


@pytest.mark.parametrize("precision", TYPES)
def test_log_has_no_value_where_there_is_none(precision):
    zero, minus_zero, negative, lowest, most, nothing = function("log", precision)(
        [0.0, -0.0, -1e-3, -np.inf, np.inf, np.nan]
    )
    assert zero == minus_zero == -np.inf
    assert most == np.inf
    assert np.isnan([negative, lowest, nothing]).all()


@pytest.mark.parametrize("precision", TYPES)
def test_log_of_numbers_below_normal_ones_stays_near_that_of_the_smallest_normal(precision):
    limits = np.finfo(TYPES[precision])
    found = function("log", precision)([limits.smallest_subnormal, limits.tiny / 2, limits.tiny])
    smallest = math.log(limits.tiny)
    assert (np.abs(found - smallest) < 1).all()
    assert (np.diff(found) >= 0).all()


@pytest.mark.parametrize("precision", TYPES)
def test_saturating_log_is_finite_and_keeps_nan(precision):
    limits = np.finfo(TYPES[precision])
    found = function("saturating", precision)(
        [0.0, -0.0, -1.0, -np.inf, limits.smallest_subnormal, limits.tiny, np.inf, np.nan]
    )
    np.testing.assert_allclose(found[:6], math.log(limits.tiny), rtol=1e-6)
    assert math.log(limits.max) <= found[6] < 1.01 * math.log(limits.max)
    assert np.isnan(found[7])
