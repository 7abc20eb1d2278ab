"""Worker processes for what is defined in a notebook or a script, which they cannot import."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import cloudpickle

from srs_eval.compute.interface import OnCrash, Tick, Work
from srs_eval.compute.processes import Processes

Result = TypeVar("Result")
_END = object()


@dataclass(frozen=True, slots=True)
class ProcessesByValue:
    """`Processes` that are sent classes of ``__main__`` by value.

    A script need not be guarded by ``if __name__ == "__main__"``: workers do not run it again.
    """

    processes: Processes

    def map(
        self, work: Work[Result], items: Sequence[Any], *, on_crash: OnCrash[Result], tick: Tick
    ) -> Iterator[Result]:
        """Yield the result of each item as it is done."""
        found = self.processes.map(_Work(work), items, on_crash=on_crash, tick=tick)
        while True:
            with _main_hidden():
                result: Any = next(found, _END)
            if result is _END:
                return
            yield result


class _Work:
    """Work that is pickled, as its results are, with the classes of ``__main__`` they need."""

    def __init__(self, work: Any) -> None:
        self._work = work
        self.patience = getattr(work, "patience", None)

    @property
    def is_spoiled(self) -> bool:
        return getattr(self._work, "is_spoiled", False)

    def __call__(self, item: Any, tick: Tick = lambda: None) -> Any:
        return _Pickled(self._work(item, tick))

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (cloudpickle.dumps(self._work),)


class _Pickled:
    """A value that is what it was once it is unpickled."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __reduce__(self) -> tuple[Any, ...]:
        return cloudpickle.loads, (cloudpickle.dumps(self._value),)


def _restored(content: bytes) -> _Work:
    return _Work(cloudpickle.loads(content))


@contextmanager
def _main_hidden() -> Iterator[None]:
    """Keep multiprocessing from running the main script again in each worker it starts."""
    main: Any = sys.modules["__main__"]
    file, spec = main.__dict__.pop("__file__", None), getattr(main, "__spec__", None)
    main.__spec__ = None
    try:
        yield
    finally:
        main.__spec__ = spec
        if file is not None:
            main.__file__ = file
