"""A second process in which algorithms are checked, started once and reused.

Unlike the workers of a run it is a subprocess, so that a script which checks an algorithm needs
no ``if __name__ == "__main__"``.
"""

from __future__ import annotations

import atexit
import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

_COMMAND = (
    "import sys; sys.path[:] = eval(sys.argv[1]); "
    "from srs_eval.evaluation.checks.worker import serve; serve()"
)

_started: dict[int, subprocess.Popen[bytes]] = {}


class WorkerDied(Exception):
    """The process ended before it answered."""


class NotImportable(Exception):
    """The module of the function cannot be imported in another process."""


def call_elsewhere(module: str, function: Callable[..., Any], *arguments: object) -> Any:
    """Call a function in another process, once `module` is loaded there, and return its result."""
    sent = (module, pickle.dumps((function, arguments)))
    process = _process()
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        pickle.dump(sent, process.stdin)
        process.stdin.flush()
        answered = pickle.load(process.stdout)
    except (EOFError, OSError, pickle.UnpicklingError) as died:
        _end(at_once=True)
        raise WorkerDied("the process ended") from died
    except KeyboardInterrupt:
        _end(at_once=True)  # its answer would be taken for that of the next call
        raise
    result, error = pickle.loads(answered)
    if error is not None:
        raise error
    return result


def serve() -> None:
    """Answer calls until the pipe is closed; what algorithms print goes to standard error."""
    with os.fdopen(os.dup(1), "wb") as ours, suppress(EOFError):
        os.dup2(2, 1)
        while True:
            pickle.dump(_answer(*pickle.load(sys.stdin.buffer)), ours)
            ours.flush()


def _answer(module: str, call: bytes) -> bytes:
    """Return the pickled result of a call, or its exception, as text where it is not portable."""
    try:
        return pickle.dumps((_called(module, call), None))
    except Exception as error:  # noqa: BLE001 - it is raised again in the other process
        error.add_note(f"in a worker process:\n{traceback.format_exc()}")
        try:
            pickle.loads(answer := pickle.dumps((None, error)))
        except Exception:  # noqa: BLE001 - unpickling runs its class
            text = f"{type(error).__name__}: {error}\n{error.__notes__[-1]}"
            return pickle.dumps((None, RuntimeError(text)))
        return answer


def _called(module: str, call: bytes) -> Any:
    try:
        import_module(module)
    except ImportError as error:
        raise NotImportable(str(error)) from error
    function, arguments = pickle.loads(call)
    return function(*arguments)


def _process() -> subprocess.Popen[bytes]:
    """Return the process started by this one, or start it."""
    pid = os.getpid()
    running = _started.get(pid)
    if running is None or running.poll() is not None:
        _end()
        _started[pid] = running = subprocess.Popen(
            [sys.executable, "-c", _COMMAND, repr(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        atexit.register(_end)
    return running


def _end(*, at_once: bool = False) -> None:
    """End the process by closing its pipe."""
    process = _started.pop(os.getpid(), None)
    if process is None:
        return
    if at_once:
        process.kill()
    with suppress(OSError):  # a pipe to what has died
        process.communicate()
