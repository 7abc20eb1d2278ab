"""Queries that Ctrl-C and SIGTERM end while the driver of a database waits or computes.

Python handles signals between its own instructions in the main thread, and most drivers return only
when they have a result. A query therefore runs in a thread of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from threading import Thread
from time import monotonic
from typing import Any, TypeVar

Result = TypeVar("Result")

# How drivers end what their connection is doing, called from another thread.
_WAYS = ("interrupt", "cancel_safe", "cancel")
_SECONDS_BETWEEN_LOOKS = 0.1
# For an orderly end; a driver that cannot be interrupted is left alone.
_SECONDS_TO_END = 1.0


class Running:
    """The connection that a query runs on, once it is open."""

    def __init__(self) -> None:
        self._connection: Any = None

    def on(self, connection: Any) -> None:
        """Note the connection of a driver."""
        self._connection = connection

    def interrupt(self) -> None:
        """End what the connection is doing, if its driver can."""
        ways = (getattr(self._connection, way, None) for way in _WAYS)
        way = next(filter(callable, ways), None)
        # The query may just have ended.
        with suppress(Exception):
            if way is not None:
                way()


def interruptible(query: Callable[[Running], Result]) -> Result:
    """Return the result of a query; the exception of a signal ends it."""
    running, future = Running(), Future[Result]()

    def run() -> None:
        try:
            future.set_result(query(running))
        except Exception as error:  # noqa: BLE001 - raised in the other thread
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    try:
        while not future.done():
            wait([future], _SECONDS_BETWEEN_LOOKS)
    finally:
        until = monotonic() + _SECONDS_TO_END
        while not future.done() and monotonic() < until:
            Thread(target=running.interrupt, daemon=True).start()
            wait([future], _SECONDS_BETWEEN_LOOKS)
    return future.result()
