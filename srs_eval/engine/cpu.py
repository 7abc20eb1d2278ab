"""The level of x86-64 that kernels are compiled for, the same for all machines of a run.

Without the environment variable ``SRS_EVAL_CPU``, kernels are compiled for the processor at hand,
and the last bits of a fit may differ between kinds of processors. With it, the engine and the
libraries that choose code by processor (numba, NumPy, OpenBLAS, PyTorch, MKL) keep to one level.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping

from srs_eval.errors import ConfigError

VARIABLE = "SRS_EVAL_CPU"
# Read once: all code of a process is compiled for the same level.
_WANTED = os.environ.get(VARIABLE, "")
_ABOVE_V3 = "X86_V4 AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL"
_NEWER = "AVX512_ICL AVX512_SPR"
_SETTINGS: Mapping[str, Mapping[str, str]] = {
    "x86-64-v3": {
        "NPY_DISABLE_CPU_FEATURES": f"{_ABOVE_V3} {_NEWER}",
        "OPENBLAS_CORETYPE": "Haswell",
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_CBWR": "AVX2",
    },
    "x86-64-v4": {
        "NPY_DISABLE_CPU_FEATURES": _NEWER,
        "OPENBLAS_CORETYPE": "SkylakeX",
        "ATEN_CPU_CAPABILITY": "avx512",
        "MKL_CBWR": "AVX512",
    },
}


def common_level() -> str:
    """Return the level that was asked for; "" for the processor at hand."""
    if _WANTED and _WANTED not in _SETTINGS:
        raise ConfigError(f"{VARIABLE}={_WANTED}: choose one of {', '.join(_SETTINGS)}")
    if _WANTED and platform.machine().lower() not in ("x86_64", "amd64"):
        raise ConfigError(f"{VARIABLE}={_WANTED}: this processor is {platform.machine()}")
    if os.environ.get(VARIABLE, "") != _WANTED or _TOO_LATE:
        raise ConfigError(
            f"{VARIABLE} must be set before Python starts; import srs_eval before NumPy"
        )
    return _WANTED


def _settle() -> bool:
    """Set what libraries read when they are imported; return whether it is too late for that."""
    settings = dict(_SETTINGS.get(_WANTED, {}))
    if settings:
        settings |= {"NUMBA_CPU_NAME": _WANTED, "NUMBA_CPU_FEATURES": ""}
    late = "numpy" in sys.modules and any(os.environ.get(k) != v for k, v in settings.items())
    os.environ.update(settings)
    return late


_TOO_LATE = _settle()
