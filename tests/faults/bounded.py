"""Functions called in processes of their own, with limits of time and memory."""

import io
import multiprocessing
import os
import resource
import signal
import tempfile
import traceback
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path

from verdicts import Verdict

TIME_LIMIT = 60  # CPU seconds: a case that waits for a busy machine does not hang
WAIT_LIMIT = 600  # seconds, for a case that waits for something that never comes
MEMORY = 2_000_000_000  # bytes beyond what the process has when a case begins
_IMPORTS = [
    *("__main__", "srs_eval.commands.run", "srs_eval.compare", "srs_eval.export"),
    "srs_eval.data.anki.collection",
]


def judge(function, case, place, seconds=0):
    """Call a function, named as module.function, with a generator and a folder; return its verdict.

    Its process is forked from a server that has all imports, and no thread.
    """
    seconds = seconds or TIME_LIMIT
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_IMPORTS)
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(theirs, function, case, place, seconds))
    process.start()
    theirs.close()
    process.join()
    if process.exitcode == 0:
        return ours.recv()
    if -process.exitcode in (signal.SIGXCPU, signal.SIGALRM):
        return Verdict("hang", f"no end after {seconds} CPU seconds or {WAIT_LIMIT} s")
    return Verdict("traceback", f"the interpreter died with {process.exitcode}")


def _answer(connection, function, case, place, seconds):
    """Judge a case within limits beyond what this process begins with."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # what other processes start leaves its temporary files elsewhere
    os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix="case_")
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
    signal.alarm(WAIT_LIMIT)
    connection.send(judged(function, case, place))


def judged(function, case, place):
    """Judge a case here; an error that it lets through is one a person would see."""
    module, name = function.rsplit(".", 1)
    place.mkdir(parents=True, exist_ok=True)
    os.chdir(place)
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            return getattr(import_module(module), name)(case.random, place)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, it is counted
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{frame.filename}:{frame.lineno}"
        return Verdict("traceback", f"{type(error).__name__}: {str(error)[:200]} ({where})")
