"""How a case ended, judged here or in a process of its own with limits of time and memory."""

import io
import multiprocessing
import os
import signal
import tempfile
import traceback
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

# Outcomes; the others are "clear error", "recorded" and "accepted".
BAD = ("traceback", "hang", "lost", "wrong")
TIME_LIMIT = 60  # CPU seconds: a case that waits for a busy machine does not hang
WAIT_LIMIT = 600  # seconds, for a case that waits for something that never comes
MEMORY = 2_000_000_000  # bytes beyond what the process has when a case begins
_LONGEST_MESSAGE = 4_000  # characters of one that is still clear


class Found(Exception):
    """A bad outcome, and what shows it."""

    def __init__(self, outcome, *shown):
        super().__init__(" ".join("; ".join(shown).split())[:600])
        self.outcome = outcome


def right(problems, outcome="accepted"):
    """Return that outcome unless there are problems."""
    if problems:
        raise Found("wrong", *problems)
    return outcome


def too_long(message):
    """Return the problem of a message that is too long to be clear."""
    n = len(message)
    return [f"a message of {n:,} characters"] if n > _LONGEST_MESSAGE else []


def judged(function, *arguments):
    """Return the outcome that a function returns or finds, and what shows it if it is bad.

    An error that it lets through is one a person would see; what it asserts is lost work.
    """
    try:
        return function(*arguments) or "recorded", ""
    except Found as found:
        return found.outcome, str(found)
    except AssertionError as error:
        return "lost", " ".join(str(error).split())[:600]
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, it is counted
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{frame.filename}:{frame.lineno}"
        return "traceback", f"{type(error).__name__}: {str(error)[:200]} ({where})"


def judged_within_limits(function, random, place, seconds=TIME_LIMIT):
    """Judge a function of a generator and a folder, in a process of its own."""
    context = multiprocessing.get_context("forkserver")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(theirs, seconds, function, random, place))
    process.start()
    theirs.close()
    process.join()
    if process.exitcode == 0:
        return ours.recv()
    if -process.exitcode in (signal.SIGXCPU, signal.SIGALRM):
        return "hang", f"no end after {seconds} CPU seconds or {WAIT_LIMIT} s"
    return "traceback", f"the interpreter died with {process.exitcode}"


def _answer(connection, seconds, function, random, place):
    """Judge within limits beyond what this process begins with."""
    import resource  # of POSIX

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # what other processes start leaves its temporary files elsewhere
    os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix="case_")
    os.chdir(place)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
    signal.alarm(WAIT_LIMIT)
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        answer = judged(function, random, place)
    connection.send(answer)
