"""Users evaluated in worker processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from srs_eval.compute import stopping
from srs_eval.compute.interface import OnCrash, Tick, Work, check_chunk
from srs_eval.errors import ConfigError, SrsEvalError

Result = TypeVar("Result")

_GO_ON = "go on"
_STARTED = False, 0, (), False  # No result, no ticks, no step, not the last
_STILLBORN = 3
_SECONDS_BETWEEN_TICKS = 0.1
_SECONDS_BETWEEN_LOOKS = 1.0
# Loaded before workers are forked, each a copy of a process that has run no algorithm. They are
# loaded because imports take seconds; modules of others are not, whatever they do when loaded.
_OURS = tuple(
    f"srs_eval.{part}"
    for part in ("commands", "evaluation", "data", "protocol", "metrics", "engine", "algorithms")
)
_DIED = "its worker process died (killed, or out of memory)"
_STUCK = "its worker process was ended: compiled code ran on beyond the time limit of fits"


@dataclass(frozen=True, slots=True)
class Processes:
    """Evaluate users in worker processes, one chunk of users at a time in each.

    A worker that dies takes no other chunk with it. Its chunk is tried again at the end, with
    no other worker beside it, and reported if that one dies too. A worker without progress for
    longer than the work allows is ended, and its chunk reported.

    Parameters
    ----------
    workers : int or None
        How many processes; None for one per available core.
    chunk : int, optional
        Users of a chunk; by default a thousandth of all, at most 50.
    """

    workers: int | None = None
    chunk: int | None = None

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise ConfigError(f"compute.workers={self.workers}: at least 1, or null for all cores")
        check_chunk(self.chunk)

    def prepare(self, *modules: str) -> None:
        """Start the server of workers, whose imports then take no time of this process.

        Each worker has these `modules` as well, loaded once.
        """
        if sys.platform != "win32":
            _start_server(modules)

    def map(
        self, work: Work[Result], items: Sequence[Any], *, on_crash: OnCrash[Result], tick: Tick
    ) -> Iterator[Result]:
        """Yield the result of each item as it is done."""
        died: list[Any] = []
        stuck: list[Any] = []
        yield from _share(work, items, self.workers or _available_cores(), died, stuck, tick)
        died_again: list[Any] = []
        yield from _share(work, died, 1, died_again, stuck, tick)
        for item in died_again:
            yield on_crash(item, _DIED)
        for item in stuck:
            yield on_crash(item, _STUCK)


def _available_cores() -> int:
    """Count the cores this process may use, which can be fewer than there are."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _share(
    work: Work[Result],
    items: Sequence[Any],
    workers: int,
    died: list[Any],
    stuck: list[Any],
    tick: Tick,
) -> Iterator[Result]:
    """Yield results as they come; items whose worker died or was ended are added to lists.

    Each worker has a pipe of its own. One that is shared, as in the executors of the standard
    library, stays blocked for ever if a worker dies while it sends.
    """
    todo = iter(items)
    started = _Workers(work)
    busy: dict[Connection, tuple[BaseProcess, Any]] = {}
    heard: dict[Connection, float] = {}
    patience: float | None = getattr(work, "patience", None)
    try:
        while True:
            stopping.check()  # for a thread that signals do not reach
            for item in islice(todo, workers - len(busy)):
                process, connection = started.one_more([each for each, _ in busy.values()])
                _hand_over(connection, item)
                busy[connection] = process, item
            if not busy:
                return
            ready = set(wait(list(busy), _SECONDS_BETWEEN_LOOKS))
            now = time.monotonic()
            heard = {each: now if each in ready else heard.get(each, now) for each in busy}
            for each in [each for each in busy if patience and now - heard[each] > patience]:
                process, item = busy.pop(each)
                process.kill()
                each.close()
                stuck.append(item)
            for connection in [each for each in busy if each in ready]:
                process, item = busy[connection]
                try:
                    is_result, ticks, answered, is_last = connection.recv()
                except (EOFError, OSError):
                    died.append(item)
                    del busy[connection]
                    connection.close()
                    started.note_death(process)
                    continue
                started.note_answer(process)
                for _ in range(ticks):
                    tick()
                if not is_result:
                    if answered:
                        tick(*answered)
                        _hand_over(connection, _GO_ON)
                    continue
                del busy[connection]
                following = None if is_last else next(todo, None)
                if following is None:
                    connection.close()  # ends the worker
                else:
                    _hand_over(connection, following)
                    busy[connection] = process, following
                yield opened(answered)
    finally:
        for process, _ in busy.values():
            process.terminate()
        started.join()


class _Workers:
    """Worker processes, each of which costs descriptors until it is closed."""

    def __init__(self, work: Work[Any]) -> None:
        self._work = work
        self._processes: list[BaseProcess] = []
        self._silent: set[BaseProcess] = set()  # Those that have not answered yet
        self._stillborn = 0
        self._has_answered = False

    def one_more(self, busy: Sequence[BaseProcess] = ()) -> tuple[BaseProcess, Connection]:
        """Start a worker, after those that have ended are closed, unless their end is not known."""
        known = [each for each in self._processes if each not in busy]
        for process in [each for each in known if not each.is_alive()]:
            self._processes.remove(process)
            self._silent.discard(process)
            process.close()
        process, connection = _start(self._work)
        self._processes.append(process)
        self._silent.add(process)
        return process, connection

    def note_answer(self, process: BaseProcess) -> None:
        """Note that a worker has sent something."""
        self._has_answered = True
        self._silent.discard(process)

    def note_death(self, process: BaseProcess) -> None:
        """Raise `SrsEvalError` if the first workers died before they could work on anything."""
        self._stillborn += process in self._silent
        if not self._has_answered and self._stillborn >= _STILLBORN:
            raise SrsEvalError(
                f"compute=processes: the first {self._stillborn} worker processes died when they "
                "were started, before they had read a log; compute=serial works in this process"
            )

    def join(self) -> None:
        """Wait for the end of all workers, and close them."""
        for process in self._processes:
            process.join()
            process.close()


def _start(work: Work[Any]) -> tuple[BaseProcess, Connection]:
    """Start a worker and send it the work."""
    if sys.platform == "win32":
        context: Any = multiprocessing.get_context("spawn")
    else:  # not fork: libraries that have started threads do not survive it
        context = multiprocessing.get_context("forkserver")
        _start_server()
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), daemon=True)
    with _standard_start_method(context.get_start_method()):
        process.start()
    theirs.close()  # so that the pipe ends with the worker
    _hand_over(ours, work)
    return process, ours


@contextmanager
def _standard_start_method(method: str) -> Iterator[None]:
    """Set a start method that a new process knows, which inherits it.

    A process takes over the default start method of its parent. In a worker of joblib that is
    ``loky``, which is unknown wherever joblib has not been imported.
    """
    before = multiprocessing.get_start_method(allow_none=True)
    if before is None or before in multiprocessing.get_all_start_methods():
        yield
        return
    multiprocessing.set_start_method(method, force=True)
    try:
        yield
    finally:
        multiprocessing.set_start_method(before, force=True)


def _start_server(modules: Sequence[str] = ()) -> None:
    """Start the server with SIGINT blocked: workers ignore it, the parent handles it."""
    ours = [name for name in sys.modules if name.startswith(_OURS)]
    forkserver.set_forkserver_preload([*ours, *modules])
    resource_tracker.ensure_running()  # which unblocks SIGINT when it starts
    # Blocked rather than ignored: a signal that comes meanwhile is handled afterwards.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _hand_over(connection: Connection, thing: object) -> None:
    """Send an object to a worker; its death shows when the answer is read."""
    with suppress(BrokenPipeError, ConnectionResetError):
        connection.send(thing)


def _serve(connection: Connection) -> None:
    """Evaluate users in a worker process until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        work, ticks = connection.recv(), _Ticks(connection)
        connection.send(_STARTED)
        while True:
            item = connection.recv()
            answered = answer(work, item, ticks)
            is_last = getattr(work, "is_spoiled", False)
            connection.send((True, ticks.taken(), answered, is_last))


class _Ticks:
    """Reports progress to the parent, at most ten times a second: the parent has many workers."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._count = 0
        self._sent = time.monotonic()

    def __call__(self, *step: object) -> None:
        """Count a fold; report a step at once, and wait: the parent may end the work instead."""
        self._count += not step
        now = time.monotonic()
        if step or now - self._sent > _SECONDS_BETWEEN_TICKS:
            self._sent = now
            self._connection.send((False, self.taken(), step, False))
        if step:
            self._connection.recv()

    def taken(self) -> int:
        """Return the number of folds that the parent has not heard of."""
        count, self._count = self._count, 0
        return count


def answer(function: Callable[..., object], *arguments: object) -> bytes:
    """Return the pickled result of a call, or the exception, to be raised by `opened`."""
    try:
        return pickle.dumps((function(*arguments), None))
    except Exception as error:  # noqa: BLE001 - it is raised again in the other process
        error.add_note(f"in a worker process:\n{traceback.format_exc()}")
        return pickle.dumps((None, _portable(error)))


def _portable(error: Exception) -> Exception:
    """Return an exception that can be pickled: the given one, or its text."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 - unpickling runs its class
        return RuntimeError(f"{type(error).__name__}: {error}\n{error.__notes__[-1]}")
    return error


def opened(answered: bytes) -> Any:
    """Return the result of a call in another process, or raise its exception."""
    result, error = pickle.loads(answered)
    if error is not None:
        raise error
    return result
