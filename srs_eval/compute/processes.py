"""Users shared among processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from srs_eval.compute.interface import OnCrash, Tick, Work
from srs_eval.errors import ConfigError
from srs_eval.nouns import User

Result = TypeVar("Result")

_QUEUED_PER_WORKER = 4
_DIED = "its worker process died (killed, or out of memory)"


@dataclass(frozen=True, slots=True)
class Processes:
    """Evaluate users in worker processes, one user at a time in each.

    A worker that dies takes no other user with it: the users it may have been working on
    are tried again alone, and the one that kills its worker again is reported.

    Parameters
    ----------
    workers : int or None
        How many processes; None for one per available core.
    """

    workers: int | None = None

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise ConfigError(f"compute.workers={self.workers}: at least 1, or null for all cores")

    def map(
        self, work: Work[Result], users: Sequence[User], *, on_crash: OnCrash[Result], tick: Tick
    ) -> Iterator[Result]:
        """Yield each user's result as it is done."""
        del tick  # steps within a user are not seen from here
        workers = self.workers or _available_cores()
        suspects: list[User] = []
        todo = iter(users)
        while interrupted := (yield from _until_broken(work, todo, workers)):
            suspects += interrupted
        for user in suspects:
            for dead in (yield from _until_broken(work, iter([user]), 1)):
                yield on_crash(dead, _DIED)


def _available_cores() -> int:
    """Count the cores this process may use, which can be fewer than there are."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _until_broken(
    work: Work[Result], todo: Iterator[User], workers: int
) -> Generator[Result, None, list[User]]:
    """Work through `todo`; if a worker dies, return the users it may have been working on."""
    # Not fork: libraries that have started threads do not survive it.
    method = "spawn" if sys.platform == "win32" else "forkserver"
    context = multiprocessing.get_context(method)
    held: list[User] = []
    pending: dict[Future[Result], User] = {}
    # Ctrl-C reaches the workers too: they end without a word, and this process says it.
    quiet = (signal.SIGINT, signal.SIG_DFL)
    pool = ProcessPoolExecutor(workers, context, signal.signal, quiet)
    try:
        while True:
            for user in islice(todo, _QUEUED_PER_WORKER * workers - len(held)):
                held.append(user)
                pending[pool.submit(work, user)] = user
            if not pending:
                return []
            for future in wait(pending, return_when=FIRST_COMPLETED).done:
                result = future.result()
                held.remove(pending.pop(future))
                yield result
    except BrokenProcessPool:
        return held
    finally:
        pool.shutdown(cancel_futures=True)
