"""The process of a run: handling its stop signal, and checking whether it exists."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

SignalHandler = Callable[[int, FrameType | None], object] | int | None


class StopSignal:
    """While installed, turns SIGTERM into an orderly `SystemExit` and remembers it.

    A handler that wrote to the store itself could wait for a lock its own thread holds,
    so it only unwinds the stack, and the owner of the run ends it.
    """

    def __init__(self) -> None:
        self.received = False
        self._process = os.getpid()
        self._before: SignalHandler = None
        self._installed = False

    def install(self) -> None:
        """Install the handler; do nothing outside the main thread, where Python cannot."""
        if threading.current_thread() is not threading.main_thread():
            return
        before = signal.getsignal(signal.SIGTERM)
        # Ignored on purpose, or owned by something that is not Python: not ours to change.
        if before in (signal.SIG_IGN, None):
            return
        self._before = before
        signal.signal(signal.SIGTERM, self._stop)
        self._installed = True

    def restore(self) -> None:
        """Restore the previous handler, unless it has been replaced since."""
        if self._installed and signal.getsignal(signal.SIGTERM) == self._stop:
            signal.signal(signal.SIGTERM, self._before)
        self._installed = False

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:
            # A forked worker inherits the handler, but the run is its parent's.
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
            return
        self.received = True
        if callable(self._before):
            self._before(number, frame)
        else:
            raise SystemExit(128 + number)


def process_is_gone(pid: int) -> bool:
    """Return whether no process with this id exists on this machine.

    False wherever it cannot be known: a run is given up only on evidence.
    """
    if os.name != "posix" or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
