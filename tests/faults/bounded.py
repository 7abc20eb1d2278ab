"""Functions called in a process of their own, with limits of time and memory."""

from __future__ import annotations

import io
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import traceback
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType

from verdicts import Case, Verdict

TIME_LIMIT = 60  # CPU seconds: a case that waits for a busy machine does not hang
WAIT_LIMIT = 600.0  # seconds, for a case that waits for something that never comes
MEMORY = 2_000_000_000  # bytes beyond what the process has when a case begins
_IMPORTS = (
    "srs_eval.commands.run",
    "srs_eval.compare",
    "srs_eval.export",
    "srs_eval.data.anki.collection",
)


class Worker:
    """A process that judges one case after the other, started again when one ends it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> Worker:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        given = (theirs, self._folder, sys.path)
        self._process = context.Process(target=_serve, args=given, daemon=True)
        self._process.start()
        theirs.close()
        try:  # imports and preparations take longer than cases
            ready = self._connection.poll(WAIT_LIMIT) and self._connection.recv()
        except EOFError:
            ready = None
        if ready != "ready":
            raise RuntimeError(f"a worker did not start, or ended with {self._stop()}")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def judge(self, function: str, case: Case) -> Verdict:
        """Call a function, named as module.function, with a generator and a fresh folder."""
        self._connection.send((function, case))
        try:
            if self._connection.poll(WAIT_LIMIT):
                verdict: Verdict = self._connection.recv()
                return verdict
            status = -signal.SIGXCPU.value
            self._stop()
        except EOFError:
            status = self._stop()
        self.__enter__()
        if status == -signal.SIGXCPU:
            limits = f"{TIME_LIMIT} CPU seconds or {WAIT_LIMIT:.0f} s"
            return Verdict("hang", f"no end after {limits}")
        return Verdict("traceback", f"the interpreter died with {status}")

    def _stop(self) -> int | None:
        self._connection.close()
        self._process.join(2)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        return self._process.exitcode


def _serve(connection: Connection, folder: Path, path: list[str]) -> None:
    """Judge cases until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.path[:] = path
    for name in _IMPORTS:
        import_module(name)
    own = folder / "tmp"  # what others start leaves its temporary files elsewhere
    own.mkdir(parents=True, exist_ok=True)
    os.environ["TMPDIR"] = tempfile.tempdir = str(own)
    import_module("run_folders").prepare(folder)
    connection.send("ready")
    while True:
        try:
            function, case = connection.recv()
        except EOFError:
            return
        _limit()
        connection.send(judged(function, case, folder / str(case).replace(" ", "_")))


def _limit() -> None:
    """Allow a case as much as every other, whatever was used and kept since the first."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))
    spent = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(spent.ru_utime + spent.ru_stime) + TIME_LIMIT
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))


def judged(function: str, case: Case, place: Path) -> Verdict:
    """Judge a case here; an error that it lets through is one a person would see."""
    module, name = function.rsplit(".", 1)
    place.mkdir(parents=True, exist_ok=True)
    os.chdir(place)
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            verdict: Verdict = getattr(import_module(module), name)(case.random, place)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, it is counted
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{frame.filename}:{frame.lineno}"
        return Verdict("traceback", f"{type(error).__name__}: {str(error)[:200]} ({where})")
    return verdict
