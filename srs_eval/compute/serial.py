"""One user after the other, in this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from srs_eval.compute.interface import OnCrash, Tick, Work, check_chunk

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Serial:
    """Evaluate users in order, in this process: the easiest to debug.

    The jobs of a sweep are evaluated by `Processes` with one worker instead, so that they share
    no state.

    Parameters
    ----------
    chunk : int, optional
        Users whose results are written together; by default a thousandth of all, at most 50.
    """

    chunk: int | None = None

    def __post_init__(self) -> None:
        check_chunk(self.chunk)

    def map(
        self, work: Work[Result], items: Sequence[Any], *, on_crash: OnCrash[Result], tick: Tick
    ) -> Iterator[Result]:
        """Yield the result of each item, in order."""
        del on_crash  # a crash here ends the process itself
        for item in items:
            yield work(item, tick)
