"""What goes on beside this process while it ends the job before."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

# Evaluations of a sweep have the cores one after the other.
one_at_a_time = threading.Lock()


@contextmanager
def begun(call: Callable[[], T], *, ahead: bool) -> Iterator[Callable[[], T]]:
    """Begin a call in a thread, or else once it is waited for; yield what waits for its result.

    It should leave the work to other processes, and look now and then for a request to stop.
    """
    if not ahead:
        yield call
        return
    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(call)
        try:
            yield future.result
        finally:
            future.cancel()
