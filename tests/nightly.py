"""Run what takes an hour or more and guards what rarely changes: ``./check nightly``.

``./check processors [arguments of pytest]`` runs pytest, by default the quick tests of numbers, as
other processors would compute: each setting takes some of the instructions away that NumPy,
OpenBLAS and the kernels choose from. What this machine cannot run is named and left out.
"""

import os
import platform
import subprocess
import sys
import time
from importlib import import_module

DAY = str(int(time.time()) // 86400)
PYTEST = (sys.executable, "-m", "pytest")
PARTS = {
    "tests marked nightly": (*PYTEST, "-m", "nightly", "-q", "-n", "auto", "--dist", "worksteal"),
    "tests of numbers on other processors": (sys.executable, __file__, "processors"),
    "campaign of faults": (sys.executable, "tests/faults/campaign.py", "--seed", DAY),
}
PLACES = "algorithms collection comparison data engine metrics protocol"
PLACES += " test_checks.py test_evaluate.py test_pages.py"
QUICK = ("-m", "not slow and not nightly", "-q", "-n", "auto")
NUMBERS = [*QUICK, *(f"tests/{place}" for place in PLACES.split())]

_numpy = import_module("numpy._core._multiarray_umath")
groups, there = _numpy.__cpu_dispatch__, _numpy.__cpu_features__
AVX2 = "X86_V3" if "X86_V3" in groups else "AVX2"
AVX512 = "X86_V4" if "X86_V4" in groups else "AVX512_SKX"


def settings():
    """Yield each setting, by name; None if this processor cannot run it."""
    for count in ("1", "2"):
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        yield f"{count} threads", dict.fromkeys(names, count)
    if platform.machine() not in ("x86_64", "AMD64"):
        return
    for name, first in (("NumPy up to AVX2", AVX512), ("NumPy's baseline", AVX2)):
        off = " ".join(group for group in groups[groups.index(first) :] if there.get(group))
        yield name, {"NPY_DISABLE_CPU_FEATURES": off} if off else None
    for core, needs in (("Nehalem", ""), ("Haswell", AVX2), ("Zen", AVX2), ("SkylakeX", AVX512)):
        here = not needs or there.get(needs)
        yield f"OpenBLAS for {core}", {"OPENBLAS_CORETYPE": core} if here else None
    for level, needs in (("x86-64-v3", AVX2), ("x86-64-v4", AVX512)):
        yield f"kernels of {level}", {"SRS_EVAL_CPU": level} if there.get(needs) else None


def main(words):
    """Run each part or, if asked to, each setting of processors; return 1 if one failed."""
    parts = [(name, command, {}) for name, command in PARTS.items()]
    if words:
        command = (*PYTEST, *(words[1:] or NUMBERS))
        parts = [(name, command, variables) for name, variables in settings()]
    ends = []
    for name, command, variables in parts:
        if variables is None:
            ends.append(f"{name}: not here")
            continue
        print(f"=== {name}: {' '.join(command)}", variables, flush=True)  # noqa: T201
        begin = time.monotonic()
        done = subprocess.run(command, env={**os.environ, **variables}, check=False)
        ended = "failed" if done.returncode else "passed"
        ends.append(f"{name}: {ended} in {time.monotonic() - begin:.0f} s")
    print(*ends, sep="\n")  # noqa: T201
    return int(any(": failed in" in end for end in ends))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
