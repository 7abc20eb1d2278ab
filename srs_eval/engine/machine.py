"""Compile code for the machine at hand.

It takes about a tenth of a second for each kernel, so they are compiled anew in every process:
nothing is written to disk, and nothing that was is trusted.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

from srs_eval.engine.cpu import VARIABLE, common_level
from srs_eval.errors import ConfigError

# What sets a level apart from those below it.
_NEEDED = {
    "x86-64-v3": ("+avx2", "+bmi2", "+fma", "+f16c"),
    "x86-64-v4": ("+avx512bw", "+avx512cd", "+avx512dq", "+avx512vl"),
}


def compiled_function(function: ir.Function) -> Callable[..., None]:
    """Compile a function of pointers and whole numbers."""
    # The engine owns the machine it is given, and takes it down with itself.
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _new_machine())
    code = _machine().emit_object(_optimised(str(function.module)))
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    kinds = [ctypes.c_void_p if each.type.is_pointer else ctypes.c_int64 for each in function.args]
    call = ctypes.CFUNCTYPE(None, *kinds)(engine.get_function_address(function.name))
    call.engine = engine  # type: ignore[attr-defined]  # holds on to the machine code with it
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
