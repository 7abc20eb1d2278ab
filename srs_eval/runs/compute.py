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
from functools import cache
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from threading import Thread
from typing import Any, Protocol, TypeVar

import cloudpickle

from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.evaluation.limits import process_is_spoiled

Result = TypeVar("Result")
Tick = Callable[..., None]  # Called after each fold
_SECONDS_BETWEEN_LOOKS = 0.1
_MOST_IN_GROUP = 20
_DIED = "its worker process died (killed, or out of memory)"
_STUCK = "its worker process was ended: compiled code ran on beyond the time limit of fits"
# Loaded before workers are forked, because imports take seconds; those of others are not.
_OURS = tuple(f"srs_eval.{part}" for part in ("runs", "evaluation", "data", "protocol", "metrics"))


def _no_tick(*_: object) -> None:
    """Count nothing."""


class Compute(Protocol):
    """Where users are evaluated."""

    def map(
        self,
        work: Callable[[Any, Tick], Result],
        items: Sequence[Any],
        died: Callable[[Any, str], Result],
        tick: Tick = _no_tick,
        *,
        patience: float | None = None,
    ) -> Iterator[Result]:
        """Yield the result of each item as it is done, in any order.

        `died` returns the result of an item whose process died, for the reason it is given; a
        process without progress for `patience` seconds is ended.
        """


@dataclass(frozen=True, slots=True)
class Serial:
    """Evaluate users in order, in this process; in one beside it where fits have a time limit."""

    def map(
        self,
        work: Callable[[Any, Tick], Result],
        items: Sequence[Any],
        died: Callable[[Any, str], Result],
        tick: Tick = _no_tick,
        *,
        patience: float | None = None,
    ) -> Iterator[Result]:
        if patience is not None:
            yield from Processes(1).map(work, items, died, tick, patience=patience)
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
        work: Callable[[Any, Tick], Result],
        items: Sequence[Any],
        died: Callable[[Any, str], Result],
        tick: Tick = _no_tick,
        *,
        patience: float | None = None,
    ) -> Iterator[Result]:
        count = min(self.workers or available_cores(), len(items) or 1)
        size = 1 if patience else max(1, min(_MOST_IN_GROUP, len(items) // (50 * count)))
        groups = deque([*items[n : n + size]] for n in range(0, len(items), size))
        suspects: list[Any] = []  # Whose worker died: tried again, with no other beside it
        with _Pool(work, patience, tick) as pool:
            for _, results in pool.run(groups, count, suspects, died):
                yield from results
            for item in suspects:
                alone: list[Any] = []
                for _, results in pool.run(deque([[item]]), 1, alone, died):
                    yield from results
                if alone:
                    yield died(item, _DIED)


class _Pool:
    """Worker processes, each in an executor of its own, so that a death is that of one item."""

    def __init__(self, work: Any, patience: float | None, tick: Tick) -> None:
        self._context: Any = multiprocessing.get_context(
            "spawn" if sys.platform == "win32" else "forkserver"
        )
        if sys.platform != "win32":
            self._context.set_forkserver_preload([m for m in sys.modules if m.startswith(_OURS)])
        # nothing is sent through the first; only this process has our end
        self._theirs, self._ours = self._context.Pipe(duplex=False)
        self._ticks, ticks = self._context.Pipe(duplex=False)
        self._begin = (self._theirs, ticks, cloudpickle.dumps(work), patience)
        self._idle: list[ProcessPoolExecutor] = []
        self._every: list[ProcessPoolExecutor] = []
        self._patience, self._tick = patience, tick

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, *_: object) -> None:
        """End the workers, whatever they do: their end of the pipe is closed."""
        self._ours.close()
        for executor in self._every:
            executor.shutdown(cancel_futures=True)
        for pipe in (self._theirs, *self._begin[:2], self._ticks):
            pipe.close()

    def run(
        self,
        groups: deque[list[Any]],
        count: int,
        suspects: list[Any],
        died: Callable[[Any, str], Any],
    ) -> Iterator[tuple[list[Any], list[Any]]]:
        """Yield groups of items with their results; items whose worker died become suspects."""
        busy: dict[Future[Any], tuple[ProcessPoolExecutor, list[Any], float]] = {}
        while groups or busy:
            while groups and len(busy) < count:
                executor, group = self._executor(), groups.popleft()
                with _main_hidden():  # an executor starts its process when it has work
                    future = executor.submit(_results, group)
                busy[future] = executor, group, time.monotonic()
            done = wait(busy, _SECONDS_BETWEEN_LOOKS, FIRST_COMPLETED).done
            while self._ticks.poll():
                self._ticks.recv_bytes()
                self._tick()
            for future in done:
                executor, group, began = busy.pop(future)
                try:
                    results, is_spoiled = cloudpickle.loads(future.result())
                except BrokenProcessPool:
                    if self._patience and time.monotonic() - began > self._patience:
                        yield group, [died(item, _STUCK) for item in group]
                    else:
                        suspects += group
                    continue
                if is_spoiled:
                    executor.shutdown(wait=False)
                else:
                    self._idle.append(executor)
                yield group, results

    def _executor(self) -> ProcessPoolExecutor:
        if self._idle:
            return self._idle.pop()
        made = ProcessPoolExecutor(1, self._context, _begin, self._begin)
        self._every.append(made)
        return made


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

    work: Any = None
    ticks: Connection | None = None
    patience: float | None = None
    problem: str = ""  # Why there is no work

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
    if _worker.problem:
        raise SrsEvalError(_worker.problem)
    _worker.be_patient()
    try:
        results = [_worker.work(item, _worker.tick) for item in group]
        return cloudpickle.dumps((results, process_is_spoiled()))
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
    _worker.ticks, _worker.patience = ticks, patience
    try:
        _worker.work = cloudpickle.loads(work)
    except Exception as error:  # noqa: BLE001 - code of others; the parent is told, once
        _worker.problem = f"a worker process cannot load the work: {type(error).__name__}: {error}"


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
