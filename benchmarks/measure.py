"""What work, a process or a command costs: CPU time, wall time, and memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

# Processes started from here have one thread each, so that CPU time counts work and not waiting.
for _name in ("OMP", "OPENBLAS", "MKL", "NUMBA", "RAYON"):
    os.environ[f"{_name}_NUM_THREADS"] = "1"
os.environ["TQDM_DISABLE"] = "1"


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds, and the most memory that the process ever held, libraries included."""

    cpu: float
    wall: float
    peak_bytes: int = 0
    result: Any = None


def clocked(work: Callable[[], Any], repeats: int = 1) -> Cost:
    """Do the work so many times in this process; return the time that took the least CPU."""
    costs = []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        result = work()
        costs.append(Cost(time.process_time() - cpu, time.perf_counter() - wall, 0, result))
    return min(costs, key=lambda cost: cost.cpu)


def in_process(function: Callable[..., Any], *args: object) -> Cost:
    """Call a function in a new process that runs nothing else, not a copy of this one.

    The time is that of the call, or what the function clocked itself. On Linux alone.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_measured, function, args).result()


def _measured(function: Callable[..., Any], args: tuple[object, ...]) -> Cost:
    cost = clocked(lambda: function(*args))
    # ru_maxrss of a new process starts from what its parent held.
    lines = Path("/proc/self/status").read_text().splitlines()
    [peak] = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    own = cost.result if isinstance(cost.result, Cost) else cost
    return replace(own, peak_bytes=int(peak) * 1024)


# The parent of the command is one that holds next to nothing, for its peak is where that of the
# command starts.
_MEASURE = """
import json, os, sys, time
began = time.perf_counter()
silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
process = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=silent)
_, status, used = os.wait4(process, 0)
seconds = used.ru_utime + used.ru_stime, time.perf_counter() - began
print(json.dumps([os.waitstatus_to_exitcode(status), *seconds, used.ru_maxrss]))
"""


def cost_of(words: Sequence[str]) -> Cost:
    """Run ``python -m srs_eval`` in a process of its own, and wait for it to end well."""
    command = [sys.executable, "-I", "-c", _MEASURE, sys.executable, "-m", "srs_eval", *words]
    measured = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    status, cpu, wall, peak = json.loads(measured.stdout)
    if status:
        raise RuntimeError(f"{' '.join(words)} ended with status {status}")
    return Cost(cpu, wall, peak * 1024)
