"""Ctrl-C and SIGTERM: an orderly end of the running command.

Python raises the exception of a signal in the current line. In a ``__del__``, in a callback of a
weak reference or of C code the exception is printed and dropped; here it is raised again.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any, NoReturn

# Programs that forward a signal send it a second time, after the terminal.
_SECONDS_OF_ONE_REQUEST = 0.5
_SECONDS_UNTIL_AGAIN = 0.01


@dataclass
class _Request:
    """The signal that requested this process to stop; 0 if there is none."""

    number: int = 0
    at: float = 0.0
    process: int = 0
    # Handler of the program that srs_eval is used in, if it is none of Python's own
    theirs: Callable[[int, FrameType | None], object] | None = None


_request = _Request()


def run(command: Callable[[], int]) -> NoReturn:
    """Run a command with signal handlers, and exit with its status.

    Ctrl-C raises `KeyboardInterrupt`, SIGTERM `SystemExit`. A second one ends the process at once.
    """
    _listen()
    try:
        status = command()
    except KeyboardInterrupt:
        status = _say_stopped()
    except SystemExit as end:
        if not is_requested():
            _stop_listening(end.code)
            raise
        status = _say_stopped()
    except Exception:
        if not is_requested():
            raise
        status = _say_stopped()  # of a library that a request has left in disorder
    _stop_listening(status)
    sys.exit(status)


def hear_sigterm() -> Callable[[], None]:
    """Hear SIGTERM in a program that did not begin with `run`; return what undoes this.

    Without a handler of the program's own it raises `SystemExit`. Nothing is done outside the main
    thread, where Python cannot, and where the signal is ignored on purpose or not Python's.
    """
    before = signal.getsignal(signal.SIGTERM)
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or before in (_stop, signal.SIG_IGN, None):
        return lambda: None
    _request.process = os.getpid()
    _request.theirs = before if callable(before) else None
    signal.signal(signal.SIGTERM, _stop)

    def undo() -> None:
        if signal.getsignal(signal.SIGTERM) == _stop:
            signal.signal(signal.SIGTERM, before)
        _request.number, _request.theirs = 0, None

    return undo


def is_requested() -> bool:
    """Whether this process was requested to stop."""
    return _request.number != 0


def exit_status() -> int:
    """Exit status of a command that was requested to stop."""
    return 128 + (_request.number or signal.SIGINT)


def check() -> None:
    """Raise the exception of a pending request to stop, if it was dropped."""
    if is_requested():
        _raise()


def _listen() -> None:
    _request.process = os.getpid()
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup and background jobs have it
            signal.signal(number, _stop)
    sys.unraisablehook = _raise_again


def _stop_listening(status: object) -> None:
    """Make a signal during exit end the process at once with the same status."""

    def end(_number: int, _frame: FrameType | None) -> None:
        if os.getpid() == _request.process:
            os._exit(status if isinstance(status, int) else int(status is not None))

    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) == _stop:
            signal.signal(number, end)


def _stop(number: int, frame: FrameType | None) -> None:
    if os.getpid() != _request.process:
        # A forked process inherits the handler, but only its parent runs the command.
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        return
    now = time.monotonic()
    if _request.theirs is not None:
        _request.number = number
        _request.theirs(number, frame)
        return
    if not is_requested():
        _request.number, _request.at = number, now
        _raise()
    if now - _request.at > _SECONDS_OF_ONE_REQUEST:
        os.write(2, b"\nsrs_eval: stopped at once\n")
        os._exit(128 + number)


def _raise() -> NoReturn:
    if _request.number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(exit_status())


def _say_stopped() -> int:
    sys.stderr.write("srs_eval: interrupted\n")
    return exit_status()


def _raise_again(dropped: Any) -> None:
    """Raise a dropped request to stop again after a short delay."""
    is_ours = issubclass(dropped.exc_type, KeyboardInterrupt | SystemExit) and is_requested()
    if not is_ours or not hasattr(signal, "setitimer"):
        sys.__unraisablehook__(dropped)
        return
    before = signal.getsignal(signal.SIGALRM)

    def again(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGALRM, before)
        _raise()

    # Not from this hook, where it would be dropped as well.
    signal.signal(signal.SIGALRM, again)
    signal.setitimer(signal.ITIMER_REAL, _SECONDS_UNTIL_AGAIN)
