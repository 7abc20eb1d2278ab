"""Compile kernels for the machine at hand.

It takes about a tenth of a second for each, so they are compiled anew in every process:
nothing is written to disk, and nothing that was is trusted.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any

import llvmlite.binding as llvm
import numpy as np

from srs_eval.cpu import VARIABLE, common_level
from srs_eval.engine.layout import LANES, Packed, aligned
from srs_eval.errors import ConfigError
from srs_eval.nouns import FloatArray

if TYPE_CHECKING:
    from srs_eval.engine.kernel_writer import KernelCode

_ADDRESS, _COUNT = ctypes.c_void_p, ctypes.c_int64
# What sets a level apart from those below it.
_NEEDED = {
    "x86-64-v3": ("+avx2", "+bmi2", "+fma", "+f16c"),
    "x86-64-v4": ("+avx512bw", "+avx512cd", "+avx512dq", "+avx512vl"),
}
_DTYPES: dict[str, type[np.float32] | type[np.float64]] = {
    "float": np.float32,
    "double": np.float64,
}


class CompiledKernel:
    """A kernel ready to be called."""

    def __init__(self, code: KernelCode) -> None:
        self.code = code
        self.dtype = _DTYPES[code.precision]
        self._function = Compiled(code.text).function(
            "kernel", _ADDRESS, _ADDRESS, _COUNT, *[_ADDRESS] * 4
        )
        self._scratch = aligned(0, self.dtype)
        self._lock = Lock()  # the scratch memory is for one call at a time

    def __call__(self, w: FloatArray, packed: Packed, out: FloatArray) -> None:
        """Run the kernel on reviews in its own precision, and write to `out`; see `aligned`."""
        assert packed.reviews.dtype == self.dtype
        assert w.dtype == np.float64
        assert w.flags.c_contiguous
        with self._lock:
            self._call(w, packed, out)

    def _call(self, w: FloatArray, packed: Packed, out: FloatArray) -> None:
        reviews, starts, lengths = packed.addresses
        size = (packed.longest * self.code.scratch + self.code.more_scratch) * LANES
        if len(self._scratch) < size:
            self._scratch = aligned(size, self.dtype)
        self._function(
            w.ctypes.data,
            reviews,
            len(packed.starts),
            starts,
            lengths,
            self._scratch.ctypes.data,
            out.ctypes.data,
        )


class Compiled:
    """A module in the compiler's language as machine code."""

    def __init__(self, text: str) -> None:
        # The engine owns the machine it is given, and takes it down with itself.
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _new_machine())
        code = _machine().emit_object(_optimised(text))
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()

    def function(self, name: str, *arguments: Any) -> Callable[..., None]:
        """Return a function of the module, given the types of its arguments."""
        found = ctypes.CFUNCTYPE(None, *arguments)(self._engine.get_function_address(name))

        # Holds on to the machine code for as long as it can be called.
        def call(*values: object, _code: Compiled = self) -> None:
            found(*values)

        return call


def _optimised(text: str) -> Any:
    module = llvm.parse_assembly(text)
    module.verify()
    module.triple = _machine().triple
    module.data_layout = str(_machine().target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    # Everything is in vectors already.
    options.loop_vectorization = False
    options.slp_vectorization = False
    builder = llvm.create_pass_builder(_machine(), options)
    builder.getModulePassManager().run(module, builder)
    return module


@cache
def _machine() -> Any:
    return _new_machine()


def _new_machine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=target_cpu(),
        features="" if common_level() else _features(),
        opt=3,
        jit=True,
    )


def target_cpu() -> str:
    """Return the processor, or the level of processors, that kernels are compiled for.

    Raise `ConfigError` if the level asked for is unknown, or this processor is below it.
    """
    level = common_level()
    lacking = [name for name in _NEEDED.get(level, ()) if name not in _features()]
    if lacking:
        raise ConfigError(f"{VARIABLE}={level}: this processor has no {', '.join(lacking)}")
    return level or str(llvm.get_host_cpu_name())


def _features() -> str:
    try:
        return str(llvm.get_host_cpu_features().flatten())
    except RuntimeError:  # unknown to LLVM here; the processor's name says enough
        return ""
