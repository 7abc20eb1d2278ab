"""What a piece of work costs: CPU time, wall time, and memory of a process of its own."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Generic, TypeVar

Result = TypeVar("Result")

_STATUS = Path("/proc/self/status")
# One thread each, so that CPU time counts work and not waiting; and no progress bars.
_QUIET_AND_ALONE = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
    "TQDM_DISABLE": "1",
}


@dataclass(frozen=True, slots=True)
class Clocked(Generic[Result]):
    """A result, and the seconds it took."""

    result: Result
    cpu: float
    wall: float


@dataclass(frozen=True, slots=True)
class Measured(Generic[Result]):
    """A result, the seconds it took, and the most memory its process ever held.

    The memory is that of the whole process: interpreter, libraries and arguments included.
    """

    result: Result
    cpu: float
    wall: float
    peak_bytes: int


def clocked(work: Callable[[], Result], repeats: int = 1) -> Clocked[Result]:
    """Do the work so many times in this process; return the time that took the least CPU."""
    done = [_once(work) for _ in range(repeats)]
    return min(done, key=lambda clock: clock.cpu)


def in_process(function: Callable[..., Result], *args: object) -> Measured[Result]:
    """Call a function in a new process that runs nothing else.

    The process is started afresh (no copy of this one), and libraries that ask the usual
    environment variables run one thread. Loading what the function stands in is not timed.

    Parameters
    ----------
    function, *args
        Found by their module or sent by pickle; the result comes back the same way.
    """
    alone = get_context("spawn")
    with _environment(_QUIET_AND_ALONE), ProcessPoolExecutor(1, mp_context=alone) as pool:
        return pool.submit(_measured, function, args).result()


def _once(work: Callable[[], Result]) -> Clocked[Result]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return Clocked(result, time.process_time() - cpu, time.perf_counter() - wall)


def _measured(function: Callable[..., Result], args: tuple[object, ...]) -> Measured[Result]:
    clock = _once(lambda: function(*args))
    return Measured(clock.result, clock.cpu, clock.wall, _peak_bytes())


def _peak_bytes() -> int:
    """Most memory this process ever had resident."""
    if _STATUS.exists():
        # On Linux ru_maxrss of a new process starts from what its parent held.
        [line] = [line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


@contextmanager
def _environment(changed: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for processes that are started meanwhile."""
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
