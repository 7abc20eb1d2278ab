"""What worker processes do for a job while this process ends the job before."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar

from srs_eval.compute.interface import Work
from srs_eval.compute.processes import Processes
from srs_eval.errors import SrsEvalError
from srs_eval.run.evaluate import Evaluation
from srs_eval.run.experiment import learns_from_other_users

T = TypeVar("T")

# Evaluations of a sweep have the cores one after the other.
_cores = threading.Lock()


@contextmanager
def begun(call: Callable[[], T], *, ahead: bool) -> Iterator[Callable[[], T]]:
    """Begin a call in a thread, or else once it is waited for; yield what waits for its result."""
    if not ahead:
        yield call
        return
    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(call)
        try:
            yield future.result
        finally:
            future.cancel()


def alone(evaluation: Evaluation) -> int:
    """Evaluate when no other evaluation of the sweep goes on."""
    with _cores:
        return evaluation.run()


def works_elsewhere(evaluation: Evaluation) -> bool:
    """Whether other processes do the work, and this one can do something else meanwhile."""
    in_processes = isinstance(evaluation.compute, Processes)
    return in_processes and not learns_from_other_users(evaluation.experiment)


def elsewhere(work: Work[T], items: Sequence[Any]) -> list[T]:
    """Return what work on items returns, each in a worker process, in any order."""

    def crashed(_item: Any, reason: str) -> NoReturn:
        raise SrsEvalError(f"{type(work).__name__}: {reason}")

    workers = Processes(len(items))
    return list(workers.map(work, items, on_crash=crashed, tick=lambda *_: None))
