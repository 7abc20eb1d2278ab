"""Users evaluated in this process, or in several of this machine."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, cached_property
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from threading import Thread
from typing import Any

import cloudpickle

from srs_eval.errors import ConfigError
from srs_eval.evaluation.limits import process_is_spoiled

Tick = Callable[..., None]  # Called after each fold
_SECONDS_BETWEEN_LOOKS = 0.1
_MOST_IN_GROUP = 20
_DIED = "its worker process died (killed, or out of memory)"
_STUCK = "its worker process was ended: compiled code ran on beyond the time limit of fits"
# Loaded before workers are forked, because imports take seconds; those of others are not.
_OURS = tuple(f"srs_eval.{part}" for part in ("runs", "evaluation", "data", "protocol", "metrics"))


@dataclass(frozen=True, slots=True)
class Serial:
    """Evaluate users in order, in this process; in one beside it where fits have a time limit."""

    def map(
        self,
        work: Any,
        items: Sequence[Any],
        died: Callable[[Any, str], Any],
        tick: Tick,
        patience: float | None = None,
    ) -> Iterator[Any]:
        """Yield the result of each item as it is done, in any order.

        `died` returns the result of an item whose process died, for the reason it is given; a
        process without progress for `patience` seconds is ended.
        """
        if patience is not None:
            yield from Processes(1).map(work, items, died, tick, patience)
            return
        for item in items:
            yield work(item, tick)


@dataclass(frozen=True, slots=True)
class Processes:
    """Evaluate users in worker processes; one whose process dies is a failure of that user only.

    Parameters
    ----------
    workers : int, optional
        How many processes; by default one per available core.
    """

    workers: int | None = None

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise ConfigError(f"compute.workers={self.workers}: at least 1, or null for all cores")

    def map(
        self,
        work: Any,
        items: Sequence[Any],
        died: Callable[[Any, str], Any],
        tick: Tick,
        patience: float | None = None,
    ) -> Iterator[Any]:
        """As in `Serial`."""
        count = min(self.workers or available_cores(), len(items) or 1)
        size = 1 if patience else max(1, min(_MOST_IN_GROUP, len(items) // (50 * count)))
        groups = deque([*items[n : n + size]] for n in range(0, len(items), size))
        suspects: deque[list[Any]] = deque()
        is_last = False
        idle: list[ProcessPoolExecutor] = []
        busy: dict[Future[Any], tuple[ProcessPoolExecutor, list[Any], float]] = {}
        with _workers(work, patience) as (new, ticks):
            while groups or busy or suspects:
                if not (groups or busy):  # those whose worker died, with no other beside them
                    groups, suspects, is_last = suspects, deque(), True
                    count = 1
                while groups and len(busy) < count:
                    executor, group = idle.pop() if idle else new(), groups.popleft()
                    with _main_hidden():  # an executor starts its process when it has work
                        future = executor.submit(_results, group)
                    busy[future] = executor, group, time.monotonic()
                done = wait(busy, _SECONDS_BETWEEN_LOOKS, FIRST_COMPLETED).done
                while ticks.poll():
                    ticks.recv_bytes()
                    tick()
                for future in done:
                    executor, group, began = busy.pop(future)
                    try:
                        results, is_spoiled = cloudpickle.loads(future.result())
                    except BrokenProcessPool:
                        is_stuck = patience and time.monotonic() - began > patience
                        if is_stuck or is_last:
                            yield died(group[0], _STUCK if is_stuck else _DIED)
                        else:
                            suspects.extend([item] for item in group)
                        continue
                    if is_spoiled:
                        executor.shutdown(wait=False)
                    else:
                        idle.append(executor)
                    yield from results


@contextmanager
def _workers(
    work: Any, patience: float | None
) -> Iterator[tuple[Callable[[], ProcessPoolExecutor], Connection]]:
    """Yield what begins a worker, in an executor of its own, and the pipe of their ticks.

    Afterwards the workers end, whatever they do: their end of a pipe is closed.
    """
    context: Any = multiprocessing.get_context("spawn" if sys.platform == "win32" else "forkserver")
    if sys.platform != "win32":
        context.set_forkserver_preload([m for m in sys.modules if m.startswith(_OURS)])
    theirs, ours = context.Pipe(duplex=False)  # nothing is sent; only this process has our end
    ticks, to_parent = context.Pipe(duplex=False)
    arguments = theirs, to_parent, cloudpickle.dumps(work), patience
    begun: list[ProcessPoolExecutor] = []

    def new() -> ProcessPoolExecutor:
        begun.append(ProcessPoolExecutor(1, context, _begin, arguments))
        return begun[-1]

    with theirs, ticks, to_parent:
        try:
            yield new, ticks
        finally:
            ours.close()
            for executor in begun:
                executor.shutdown(cancel_futures=True)


def available_cores() -> int:
    """Count the cores this process may use, which can be fewer than there are."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def end_with_launcher() -> None:
    """End this process when the one that started it is gone, if it is a worker of joblib."""
    parent = multiprocessing.parent_process()
    if parent is not None and os.getppid() == parent.pid:  # else it is one of a fork server
        if sys.platform != "win32":  # joblib's own is not known to the workers of this one
            multiprocessing.set_start_method("forkserver", force=True)
        Thread(target=_end_after, args=(_adopted, parent.pid), daemon=True).start()


@dataclass
class _Worker:
    """What a worker process has been given."""

    content: bytes = b""
    ticks: Connection | None = None
    patience: float | None = None

    @cached_property
    def work(self) -> Any:
        """Return the work; what it lacks in this process is raised for each item."""
        return cloudpickle.loads(self.content)

    def tick(self, *_: object) -> None:
        """Tell the parent of a fold, and begin to wait for the next."""
        self.be_patient()
        with suppress(OSError):
            assert self.ticks is not None
            self.ticks.send_bytes(b".")

    def be_patient(self) -> None:
        """End this process if there is no progress: also where code does not return to Python."""
        if self.patience is not None:
            faulthandler.dump_traceback_later(self.patience, exit=True, file=_nowhere())


_worker = _Worker()


@cache
def _nowhere() -> Any:
    """Return a file for tracebacks of hangs, open as long as the process lives."""
    return open(os.devnull, "w")  # noqa: PTH123


def _results(group: list[Any]) -> bytes:
    """Do the work for a group of items, in a worker; pickle classes of scripts by value."""
    _worker.be_patient()
    try:
        results = [_worker.work(item, _worker.tick) for item in group]
        content: bytes = cloudpickle.dumps((results, process_is_spoiled()))
        return content
    finally:
        faulthandler.cancel_dump_traceback_later()


def _begin(parent: Connection, ticks: Connection, work: bytes, patience: float | None) -> None:
    """Make a worker end when the other end of a pipe is closed, as it is when its owner is killed.

    A worker does not notice that by itself: it has both ends of the queues that it waits for.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal: the parent ends the workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    Thread(target=_end_after, args=(wait_for, [parent]), daemon=True).start()
    if sys.platform == "linux":  # code that holds the interpreter stops the thread, not the kernel
        import fcntl

        own = os.open(f"/proc/self/fd/{parent.fileno()}", os.O_RDONLY)  # not shared with others
        fcntl.fcntl(own, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(own, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(own, fcntl.F_SETFL, os.O_ASYNC)
    _worker.content, _worker.ticks, _worker.patience = work, ticks, patience


@contextmanager
def _main_hidden() -> Iterator[None]:
    """Keep multiprocessing from running the main script again in each worker it starts."""
    main: Any = sys.modules["__main__"]
    file, spec = main.__dict__.pop("__file__", None), getattr(main, "__spec__", None)
    main.__spec__ = None
    try:
        yield
    finally:
        main.__spec__ = spec
        if file is not None:
            main.__file__ = file


def _adopted(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_SECONDS_BETWEEN_LOOKS)


def _end_after(waits: Callable[[Any], object], for_what: Any) -> None:
    waits(for_what)
    os._exit(1)
