"""The interface of all ways to evaluate many users."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from srs_eval.errors import ConfigError

Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)

# Callback without arguments after each fold, and with (step, predictions) after each step.
Tick = Callable[..., None]
OnCrash = Callable[[Any, str], Result]


class Work(Protocol[Result_co]):
    """A picklable function of one item, which calls `tick` as it proceeds.

    An attribute `patience`, where there is one, is after how many seconds without a tick a worker
    process is ended as stuck; None for never. An attribute `is_spoiled` is true where the process
    should do no more work.
    """

    def __call__(self, item: Any, /, tick: Tick = ...) -> Result_co:
        """Do the work for one item."""
        ...


class Compute(Protocol):
    """A map over items, such as chunks of users; results do not depend on which one is used.

    An attribute `chunk`, where there is one, is how many users to evaluate as one item.
    """

    def map(
        self, work: Work[Result], items: Sequence[Any], *, on_crash: OnCrash[Result], tick: Tick
    ) -> Iterator[Result]:
        """Yield the result of each item as it is done, in any order.

        `on_crash` makes the result of an item whose worker process died, given the reason. `tick`
        is called as work proceeds, with the arguments of a progress bar; what it raises ends the
        work.
        """
        ...


def check_chunk(chunk: int | None) -> None:
    """Raise `ConfigError` unless chunks have a user at least."""
    if chunk is not None and chunk < 1:
        raise ConfigError(f"compute.chunk={chunk}: at least 1, or null to derive it")
