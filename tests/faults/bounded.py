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
from contextlib import redirect_stderr, redirect_stdout, suppress
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path

from tqdm import tqdm
from verdicts import Case, Verdict

TIME_LIMIT = 60  # CPU seconds: a case that waits for a busy machine does not hang
WAIT_LIMIT = 600  # seconds, for a case that waits for something that never comes
MEMORY = 2_000_000_000  # bytes beyond what the process has when a case begins
_IMPORTS = (
    "srs_eval.commands.run",
    "srs_eval.compare",
    "srs_eval.export",
    "srs_eval.data.anki.collection",
)


class Worker:
    """A process with all imports, which forks one for each case."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> Worker:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, sys.path), daemon=True)
        self._process.start()
        theirs.close()
        # what all cases change is made once, which takes longer than a case may
        made = self._ask("run_folders.prepare", Case("", 0, 0), self._folder, WAIT_LIMIT)
        if made.outcome != "accepted":
            raise RuntimeError(f"nothing to change was made: {made.detail}")
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()  # ends the process
        self._process.join()

    def judge(self, function: str, case: Case) -> Verdict:
        """Call a function, named as module.function, with a generator and a fresh folder."""
        return self._ask(function, case, self._folder / str(case).replace(" ", "_"), TIME_LIMIT)

    def _ask(self, *call: object) -> Verdict:
        self._connection.send(call)
        verdict: Verdict = self._connection.recv()
        return verdict


def _serve(connection: Connection, path: list[str]) -> None:
    """Judge cases until there are no more, each in a fork, which starts no thread before."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.path[:] = path
    for name in _IMPORTS:
        import_module(name)
    tqdm.get_lock()  # a semaphore that a fork would leave behind
    # what other processes start leaves its temporary files elsewhere
    os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix="cases_")
    with suppress(EOFError):
        while True:
            function, case, place, seconds = connection.recv()
            if not (child := os.fork()):
                try:
                    _limit(seconds)
                    connection.send(judged(function, case, place))
                    os._exit(0)
                finally:
                    os._exit(1)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if -status in (signal.SIGXCPU, signal.SIGALRM):
                limits = f"{seconds} CPU seconds or {WAIT_LIMIT} s"
                connection.send(Verdict("hang", f"no end after {limits}"))
            elif status:
                connection.send(Verdict("traceback", f"the interpreter died with {status}"))


def _limit(seconds: int) -> None:
    """Limit what a case may use beyond what it begins with."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
    signal.alarm(WAIT_LIMIT)


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
