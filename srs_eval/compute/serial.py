"""One user after the other, in this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from srs_eval.compute.interface import OnCrash, Tick, Work
from srs_eval.nouns import User

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Serial:
    """Evaluate users in order, in this process: the easiest to debug.

    The jobs of a sweep are evaluated by `Processes` with one worker instead, so that they share
    no state.
    """

    def map(
        self, work: Work[Result], users: Sequence[User], *, on_crash: OnCrash[Result], tick: Tick
    ) -> Iterator[Result]:
        """Yield each user's result, in order."""
        del on_crash  # a crash here ends the process itself
        for user in users:
            yield work(user, tick)
