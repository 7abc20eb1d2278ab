"""Queries that Ctrl-C and SIGTERM end while the driver of a database waits or computes.

Python handles signals between its own instructions in the main thread, and most drivers return only
when they have a result. A query therefore runs in a thread of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from time import monotonic
from typing import Any, TypeVar

Result = TypeVar("Result")

# How drivers end what their connection is doing, called from another thread.
_WAYS = ("interrupt", "cancel_safe", "cancel")
_SECONDS_BETWEEN_LOOKS = 0.1
# For an orderly end; a driver that cannot be interrupted is left alone.
_SECONDS_TO_END = 1.0


class Running:
    """A query in its thread, and the connection it runs on."""

    def __init__(self, query: Callable[[Running], Any]) -> None:
        self._query = query
        self._connection: Any = None
        self._is_over = Event()
        self._result: Any = None
        self._error: Exception | None = None

    def on(self, connection: Any) -> None:
        """Note the connection of a driver, once it is open."""
        self._connection = connection

    def run(self) -> None:
        """Run the query; its error is raised by `result`."""
        try:
            self._result = self._query(self)
        except Exception as error:  # noqa: BLE001 - raised in the other thread
            self._error = error
        finally:
            self._is_over.set()

    def is_over(self) -> bool:
        """Wait a moment for the query, and return whether it has ended."""
        return self._is_over.wait(_SECONDS_BETWEEN_LOOKS)

    def end(self) -> None:
        """Interrupt the query, if its driver can, and wait for its end."""
        until = monotonic() + _SECONDS_TO_END
        while monotonic() < until:
            ways = (getattr(self._connection, way, None) for way in _WAYS)
            way = next(filter(callable, ways), None)
            if way is not None:
                Thread(target=_quietly, args=(way,), daemon=True).start()
            if self.is_over():
                return

    def result(self) -> Any:
        """Return the result of the query, or raise its error."""
        if self._error is not None:
            raise self._error
        return self._result


def interruptible(query: Callable[[Running], Result]) -> Result:
    """Return the result of a query; the exception of a signal ends it."""
    running = Running(query)
    Thread(target=running.run, daemon=True).start()
    is_over = False
    try:
        while not is_over:
            is_over = running.is_over()
    finally:
        if not is_over:
            running.end()
    result: Result = running.result()
    return result


def _quietly(way: Callable[[], object]) -> None:
    """Call what ends a query, whatever it raises: the query may just have ended."""
    with suppress(Exception):
        way()
