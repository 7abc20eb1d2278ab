"""Kernels run on the widest registers of the machine; if they stop to, this says so."""

import platform
import re

import llvmlite.binding as llvm
import pytest
from published import PUBLISHED

from srs_eval.cpu import common_level
from srs_eval.engine import machine
from srs_eval.engine.fisher_kernel import fisher_kernel
from srs_eval.engine.gradient_kernel import gradient_kernel
from srs_eval.engine.tracing import trace
from srs_eval.engine.walk_kernel import walk_kernel

_ARITHMETIC = re.compile(r"^\s*v?(?:mul|add|sub|div|fn?m(?:add|sub)\d*)([ps])[sd]\b(.*)$", re.M)
_MEMORY_ONLY = re.compile(r"memset|memcpy|memmove")
_KERNELS = {
    "gradient": gradient_kernel,
    "fisher": lambda traced, precision: fisher_kernel(traced, precision, tile=3).kernel,
    "walk": walk_kernel,
}


def registers():
    """Prefix of the names of the widest registers."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        pytest.skip(f"the listing of {platform.machine()} is another language than that of x86")
    features = llvm.get_host_cpu_features()
    if features.get("avx512f") and common_level() != "x86-64-v3":
        return "zmm"
    if features.get("avx2") or features.get("avx"):
        return "ymm"
    pytest.skip("this processor has no vector registers beyond those of SSE")


@pytest.mark.parametrize("precision", ["float", "double"])
@pytest.mark.parametrize("name", _KERNELS)
def test_arithmetic_is_on_the_widest_registers_and_calls_no_function(name, precision):
    widest = registers()
    kernel = _KERNELS[name](trace(PUBLISHED["FSRS-6"]), precision)
    listing = str(machine._machine().emit_assembly(machine._optimised(kernel.text)))
    packed = [operands for kind, operands in _ARITHMETIC.findall(listing) if kind == "p"]
    assert len(packed) > 100
    # The last sums over lanes, once per call, are on shorter and shorter ones.
    assert sum(widest in operands for operands in packed) > 0.8 * len(packed)
    # By name, or by an address that was put into a register before.
    called = re.findall(r"^\s*callq?\s+([^*\s]\S*)", listing, re.M)
    called += re.findall(r"^\s*movabsq\s+\$([A-Za-z_]\w*)", listing, re.M)
    assert [name for name in called if not _MEMORY_ONLY.match(name)] == []
