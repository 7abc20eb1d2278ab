"""Kernels run on the widest registers of the machine; if they stop to, this says so."""

import platform
import re
from functools import lru_cache

import llvmlite.binding as llvm
import pytest
from published import PUBLISHED

from srs_eval.cpu import common_level
from srs_eval.engine import machine
from srs_eval.engine.fisher_kernel import fisher_kernel
from srs_eval.engine.gradient_kernel import gradient_kernel
from srs_eval.engine.tracing import trace
from srs_eval.engine.walk_kernel import walk_kernel

_X86 = platform.machine().lower() in ("x86_64", "amd64")
_ARITHMETIC = re.compile(r"^\s*v?(?:mul|add|sub|div|fn?m(?:add|sub)\d*)([ps])[sd]\b(.*)$", re.M)
_MEMORY_ONLY = re.compile(r"memset|memcpy|memmove")


@lru_cache
def listing_of(name, precision):
    """Return the assembly of a kernel of FSRS-6."""
    traced = trace(PUBLISHED["fsrs6"])
    kernel = {
        "gradient": lambda: gradient_kernel(traced, precision),
        "fisher": lambda: fisher_kernel(traced, precision, tile=3).kernel,
        "walk": lambda: walk_kernel(traced, precision),
    }[name]()
    return str(machine._machine().emit_assembly(machine._optimised(kernel.text)))


def registers():
    """Prefix of the names of the widest registers."""
    if not _X86:
        pytest.skip(f"the listing of {platform.machine()} is another language than that of x86")
    features = llvm.get_host_cpu_features()
    if features.get("avx512f") and common_level() != "x86-64-v3":
        return "zmm"
    if features.get("avx2") or features.get("avx"):
        return "ymm"
    pytest.skip("this processor has no vector registers beyond those of SSE")


@pytest.mark.parametrize("precision", ["float", "double"])
@pytest.mark.parametrize("name", ["gradient", "fisher", "walk"])
def test_arithmetic_is_on_the_widest_registers(name, precision):
    widest = registers()
    listing = listing_of(name, precision)
    found = _ARITHMETIC.findall(listing)
    packed = [operands for kind, operands in found if kind == "p"]
    assert len(packed) > 100
    # The last sums over lanes, once per call, are on shorter and shorter ones.
    assert sum(widest in operands for operands in packed) > 0.8 * len(packed)


@pytest.mark.parametrize(("name", "count"), [("gradient", 2), ("fisher", 1), ("walk", 1)])
def test_nothing_in_the_loops_is_done_one_number_at_a_time(name, count):
    registers()
    assert len(list(loops(listing_of(name, "float")))) == count
    for loop in loops(listing_of(name, "float")):
        kinds = [kind for kind, _ in _ARITHMETIC.findall(loop)]
        assert kinds.count("s") == 0
        assert len(kinds) > 50


def loops(listing):
    """Pick the stretches between labels that do much and end in a jump back to their start."""
    for stretch in re.split(r"^(?=\.LBB\w+:)", listing, flags=re.M):
        label = stretch.split(":")[0]
        jumps_back = re.search(rf"^\s*j\w+\s+{re.escape(label)}$", stretch, re.M)
        if jumps_back and len(_ARITHMETIC.findall(stretch)) > 50:
            yield stretch


@pytest.mark.parametrize("precision", ["float", "double"])
@pytest.mark.parametrize("name", ["gradient", "fisher", "walk"])
def test_no_function_is_called_for_single_numbers(name, precision):
    registers()
    listing = listing_of(name, precision)
    # By name, or by an address that was put into a register before.
    direct = re.findall(r"^\s*callq?\s+([^*\s]\S*)", listing, re.M)
    addresses = re.findall(r"^\s*movabsq\s+\$([A-Za-z_]\w*)", listing, re.M)
    called = {*direct, *addresses}
    assert {name for name in called if not _MEMORY_ONLY.match(name)} == set()
