"""A time limit for fits."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from srs_eval.errors import ConfigError

# Reading, scoring and writing take time too, and so does starting a process.
_GRACE = 60.0
_spoiled = threading.Event()


class FitTimeoutError(BaseException):
    """A fit took too long; not an `Exception`, so that algorithms do not catch it."""


def process_is_spoiled() -> bool:
    """Whether a fit was interrupted in this process, which may have left libraries in any state."""
    return _spoiled.is_set()


def patience(timeout: float | None) -> float:
    """Return the seconds without progress after which a worker process is stuck.

    Raise `ConfigError` if `timeout` is no time that a timer has.

    >>> patience(30.0), patience(None)
    (120.0, inf)
    """
    if timeout is None:
        return math.inf
    if not 0 < timeout <= threading.TIMEOUT_MAX:
        raise ConfigError(f"fit_timeout={timeout}: expected seconds above 0, or null for no limit")
    return 2 * timeout + _GRACE


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Raise `FitTimeoutError` where the body takes longer; no limit if None.

    Compiled code is not interrupted, nor is any code where there is no timer: the exception is
    raised when it returns. A process in which it does not return is ended by its parent, see
    `patience`.
    """
    if seconds is None:
        yield
        return
    is_over, began = False, time.monotonic()
    is_main = threading.current_thread() is threading.main_thread()
    has_timer = is_main and hasattr(signal, "setitimer")

    def ring(_number: int, _frame: object) -> None:
        if not is_over:
            _spoiled.set()
            raise FitTimeoutError

    before = signal.signal(signal.SIGALRM, ring) if has_timer else None
    try:
        if has_timer:
            signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
        if time.monotonic() - began > seconds:
            ring(0, None)
    finally:
        is_over = True  # first: an alarm that rings here must not leave its handler behind
        if has_timer:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
