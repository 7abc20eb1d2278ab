"""Run pytest as other processors would compute: ``./check processors [arguments of pytest]``.

Numbers of a fit, an interval or a metric differ in their last bits between processors, because
NumPy, OpenBLAS and the kernels of srs_eval choose instructions by what there is. Each setting
takes some of them away, or asks for those of another processor; what this machine cannot run is
named and left out. By default, the quick tests of numbers run.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module

_numpy = import_module("numpy._core._multiarray_umath")
groups, there = _numpy.__cpu_dispatch__, _numpy.__cpu_features__
AVX2 = "X86_V3" if "X86_V3" in groups else "AVX2"
AVX512 = "X86_V4" if "X86_V4" in groups else "AVX512_SKX"
NUMBERS = [
    *("-m", "not slow and not nightly", "-q", "-n", "auto"),
    *(f"tests/{folder}" for folder in ("algorithms", "engine", "metrics", "protocol", "stats")),
    *(f"tests/{folder}" for folder in ("comparison", "results", "data", "collection")),
    *("tests/test_checks.py", "tests/test_golden_run.py", "tests/test_evaluate.py"),
    *("tests/test_scoring.py", "tests/test_power.py", "tests/test_book.py"),
]


def without(first: str) -> str:
    """Return the groups of instructions from one on that NumPy would use here."""
    return " ".join(name for name in groups[groups.index(first) :] if there.get(name))


def settings() -> Iterator[tuple[str, Mapping[str, str] | None]]:
    """Yield each setting, by name; None if this processor cannot run it."""
    for threads in ("1", "2"):
        yield (
            f"{threads} threads",
            dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads),
        )
    if platform.machine() not in ("x86_64", "AMD64"):
        return
    for name, first in (("NumPy up to AVX2", AVX512), ("NumPy's baseline", AVX2)):
        off = without(first)
        yield name, {"NPY_DISABLE_CPU_FEATURES": off} if off else None
    for core, needs in (("Nehalem", ""), ("Haswell", AVX2), ("Zen", AVX2), ("SkylakeX", AVX512)):
        here = not needs or there.get(needs)
        yield f"OpenBLAS for {core}", {"OPENBLAS_CORETYPE": core} if here else None
    for level, needs in (("x86-64-v3", AVX2), ("x86-64-v4", AVX512)):
        yield f"kernels of {level}", {"SRS_EVAL_CPU": level} if there.get(needs) else None


def main(arguments: Sequence[str]) -> int:
    """Run pytest under each setting; return 1 if it failed under any."""
    results = []
    for name, variables in settings():
        if variables is None:
            results.append(f"{name}: not here")
            continue
        print(f"=== {name}: {' '.join(f'{k}={v}' for k, v in variables.items())}", flush=True)  # noqa: T201
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *(arguments or NUMBERS)],
            env={**os.environ, **variables},
            check=False,
        )
        results.append(f"{name}: {'failed' if done.returncode else 'passed'}")
    print(*results, sep="\n")  # noqa: T201
    return int(any(result.endswith("failed") for result in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
