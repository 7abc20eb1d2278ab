"""Users evaluated in this process, in several of this machine, or as tasks of a Ray cluster."""

from __future__ import annotations

import faulthandler
import logging
import math
import multiprocessing
import os
import platform
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import islice
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any, NamedTuple

import cloudpickle

from srs_eval.engine.cpu import VARIABLE, common_level
from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.evaluation.limits import process_is_spoiled
from srs_eval.runs.config import code_hash

Tick = Callable[..., None]  # Called after each fold
_SECONDS_BETWEEN_LOOKS = 0.1
_LOST = "its worker process died on every try (killed, out of memory, or its machine was lost)"
_STUCK = "its worker process was ended: compiled code ran on beyond fit_timeout"
# Loaded before workers are forked, because imports take seconds.
_PRELOADED = [
    *("srs_eval.runs.evaluation", "srs_eval.engine.kernels"),
    *("srs_eval.data.synthetic", "srs_eval.data.table"),
]


class Lost(NamedTuple):
    """An item without a result: its process has died."""

    item: Any
    reason: str = "its worker process died (killed, or out of memory)"


@dataclass(frozen=True, slots=True)
class Serial:
    """Evaluate users in order, in this process; in one beside it where fits have a time limit."""

    def map(self, work: Any, items: Iterable[Any], tick: Tick, patience: float) -> Iterator[Any]:
        """Yield the result of each item as it is done, in any order; `Lost` if its process dies.

        A process without progress for `patience` seconds is ended.
        """
        if patience < math.inf:
            yield from Processes(1).map(work, items, tick, patience)
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

    def map(self, work: Any, items: Iterable[Any], tick: Tick, patience: float) -> Iterator[Any]:
        """As in `Serial`."""
        content, again = cloudpickle.dumps(work), []
        for result in _shared(content, items, self.workers or available_cores(), tick, patience):
            if isinstance(result, Lost) and result == Lost(result.item):
                again.append(result.item)  # perhaps it was for another's memory
            else:
                yield result
        yield from _shared(content, again, 1, tick, patience)


@dataclass(frozen=True, slots=True)
class Ray:
    """Evaluate users as tasks of a Ray cluster, which machines may join and leave.

    A cluster that is started here listens to this machine alone and asks for a token. All machines
    need the same code, and the data at the same path or address.

    Parameters
    ----------
    address : str, optional
        A running cluster, such as ``auto`` or ``ray://head:10001``; None starts one here.
    retries : int
        How often a user is evaluated again whose process or machine was lost.
    cpus, gpus : float
        What a user occupies of a machine.
    """

    address: str | None = None
    retries: int = 3
    cpus: float = 1
    gpus: float = 0

    def map(self, work: Any, items: Iterable[Any], tick: Tick, patience: float) -> Iterator[Any]:
        """As in `Serial`, but `tick` is called by no machine.

        Raise `SrsEvalError` if the cluster cannot be reached, or a machine has other code.
        """
        ray = self._connected()
        from ray.exceptions import RayError, RayTaskError

        level = common_level()
        # a fit that was interrupted may have left its process in any state
        task = ray.remote(max_calls=1 if patience < math.inf else 0)(_result).options(
            num_cpus=self.cpus,
            num_gpus=self.gpus,
            max_retries=self.retries,
            runtime_env={"env_vars": {VARIABLE: level}} if level else None,
        )
        fixed = ray.put(work), str(Path.cwd()), code_hash(), patience
        todo, under_way = iter(items), dict[Any, Any]()
        try:
            while True:
                most = 2 * max(1, int(ray.cluster_resources().get("CPU", 1)))
                for item in islice(todo, max(most - len(under_way), 0)):  # machines come and go
                    under_way[task.remote(item, *fixed)] = item
                if not under_way:
                    return
                for reference in ray.wait(list(under_way), num_returns=1, timeout=1)[0]:
                    item = under_way.pop(reference)
                    try:
                        result = ray.get(reference)
                    except RayTaskError as error:  # a fault of the program itself
                        raise error.cause or error from error
                    except RayError:
                        result = Lost(item, _LOST)
                    yield result
        finally:
            for reference in under_way:
                ray.cancel(reference, force=True)

    def _connected(self) -> Any:
        """Connect to the cluster, or start one here."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        local: dict[str, Any] = {}
        if self.address is None:
            os.environ["RAY_AUTH_MODE"] = "token"  # read when Ray is imported
            local = {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
        try:
            import ray

            if not ray.is_initialized():
                ray.init(
                    self.address or "local",  # None would be that of RAY_ADDRESS
                    logging_level=logging.ERROR,
                    log_to_driver=False,
                    **local,
                )
        except Exception as error:  # Ray raises instances of Exception itself, too
            reason = str(error).strip().partition("\n")[0] or type(error).__name__
            raise SrsEvalError(f"compute=ray: {reason}") from error
        return ray


def available_cores() -> int:
    """Count the cores this process may use, which can be fewer than there are."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def end_with_launcher() -> None:
    """End this process when the one that started it is gone, if it is a worker of joblib."""
    launcher = multiprocessing.parent_process()
    if launcher is not None and sys.platform != "win32":
        # joblib's own start method is not known to the workers of this process
        multiprocessing.set_start_method("forkserver", force=True)
        parent = os.getppid()
        _end_when(lambda: os.getppid() != parent or _is_gone(launcher.pid))


def _is_gone(pid: int | None) -> bool:
    """Whether no process has this number: it was gone before this one looked at its parent."""
    try:
        os.kill(pid or 0, 0)
    except ProcessLookupError:
        return True
    return False


def _shared(
    content: bytes, items: Iterable[Any], count: int, tick: Tick, patience: float
) -> Iterator[Any]:
    """Share items among workers, one at a time each; yield results."""
    todo, busy = deque(items), dict[Any, _Worker]()

    def go_on(worker: _Worker | None) -> None:
        if todo:
            worker = worker or _Worker(content)
            worker.begin(todo.popleft())
            busy[worker.pipe] = worker
        elif worker is not None:
            worker.process.kill()

    try:
        for _ in range(count):
            go_on(None)
        while busy:
            for pipe in wait(busy, _SECONDS_BETWEEN_LOOKS):
                worker = busy[pipe]
                worker.progress = time.monotonic()
                try:
                    answer = worker.pipe.recv()
                except (EOFError, OSError):
                    answer = worker.lost, False
                if answer is None:
                    tick()
                    continue
                del busy[pipe]
                result, is_usable = answer
                if isinstance(result, Exception):
                    raise result
                go_on(worker if is_usable else worker.process.kill())
                yield result
            for worker in busy.values():
                if time.monotonic() - worker.progress > patience:
                    worker.lost = Lost(worker.lost.item, _STUCK)
                    worker.process.kill()
    finally:
        for worker in busy.values():
            worker.process.kill()


class _Worker:
    """A process that does one item after another."""

    def __init__(self, content: bytes) -> None:
        self.pipe, theirs = begin_loading().Pipe()
        self.process = begin_loading().Process(target=_serve, args=(theirs, content))
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")  # the worker would run the script again
        try:
            self.process.start()
        finally:
            sys.modules["__main__"] = main
        theirs.close()

    def begin(self, item: Any) -> None:
        """Send an item."""
        self.lost, self.progress = Lost(item), time.monotonic()
        with suppress(OSError):  # it has died, as will be seen
            self.pipe.send(item)


@cache
def begin_loading() -> Any:
    """Return how workers begin: forked from a process that begins to load what they need.

    Ctrl-C waits meanwhile: it is for the parent, who ends the workers.
    """
    if sys.platform == "win32":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    resource_tracker.ensure_running()  # it unblocks signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return context


def _serve(pipe: Connection, content: bytes) -> None:
    """Do the work for each item that comes, in a worker; pickle classes of scripts by value."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal: the parent ends the workers
    _end_with_parent()
    work = cache(cloudpickle.loads)  # what it lacks in this process is raised for an item
    with suppress(EOFError, OSError):  # the parent is gone
        while True:
            item = pipe.recv()
            try:
                result = work(content)(item, lambda *_: pipe.send(None))
                answer = cloudpickle.dumps((result, not process_is_spoiled()))
            except Exception as error:  # noqa: BLE001 - it is raised in the parent
                error.add_note(traceback.format_exc())
                answer = cloudpickle.dumps((error, False))
            pipe.send_bytes(answer)


def _end_with_parent() -> None:
    """Make a worker end when its parent is killed, whatever it does then."""
    parent: Any = multiprocessing.parent_process()
    _end_when(lambda: not parent.is_alive())
    if sys.platform == "linux":  # code that holds the interpreter stops threads, not the kernel
        import fcntl

        fcntl.fcntl(parent.sentinel, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(parent.sentinel, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(parent.sentinel, fcntl.F_SETFL, os.O_ASYNC)


def _end_when(is_so: Callable[[], bool]) -> None:
    """End this process when something is so, which a thread looks at."""

    def look() -> None:
        while not is_so():
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    Thread(target=look, daemon=True).start()


def _result(item: Any, work: Any, folder: str, code: str, patience: float) -> Any:
    """Do the work for one item on whichever machine this is, be it one that has just joined."""
    if code_hash() != code:
        raise SrsEvalError(f"compute=ray: {platform.node()} has other code; install the same there")
    if Path(folder).is_dir():
        os.chdir(folder)  # paths are relative to it

    def tick(*_: object) -> None:
        if patience < math.inf:  # compiled code that runs on beyond it ends the process
            faulthandler.dump_traceback_later(patience, exit=True)

    tick()
    try:
        return work(item, tick)
    finally:
        faulthandler.cancel_dump_traceback_later()
