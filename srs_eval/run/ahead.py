"""Evaluations that go on in worker processes while this one ends the job before."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from srs_eval.compute.processes import Processes
from srs_eval.run.evaluate import Evaluation
from srs_eval.run.experiment import learns_from_other_users

# Evaluations of a sweep have the cores one after the other.
_cores = threading.Lock()


@contextmanager
def begun(evaluation: Evaluation, *, ahead: bool) -> Iterator[Callable[[], int]]:
    """Begin an evaluation, and yield what waits for its end and returns the users done before.

    One that may go `ahead` is begun at once, beside the caller, if other processes do the work;
    any other once it is waited for.
    """

    def alone() -> int:
        with _cores:
            return evaluation.run()

    learns_first = learns_from_other_users(evaluation.experiment)
    if not ahead:
        yield evaluation.run
    elif learns_first or not isinstance(evaluation.compute, Processes):
        yield alone
    else:
        with ThreadPoolExecutor(1) as thread:
            future = thread.submit(alone)
            try:
                yield future.result
            finally:
                future.cancel()
