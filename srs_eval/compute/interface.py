"""The interface of all ways to evaluate many users."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from srs_eval.nouns import User

Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)

# Callback without arguments after each fold, and with (step, predictions) after each step.
Tick = Callable[..., None]
OnCrash = Callable[[User, str], Result]


class Work(Protocol[Result_co]):
    """A picklable function of one user, which calls `tick` as it proceeds."""

    def __call__(self, user: User, tick: Tick = ...) -> Result_co:
        """Do the work for one user."""
        ...


class Compute(Protocol):
    """A map over users; results do not depend on which one is used."""

    def map(
        self, work: Work[Result], users: Sequence[User], *, on_crash: OnCrash[Result], tick: Tick
    ) -> Iterator[Result]:
        """Yield the result of each user as it is done, in any order.

        Parameters
        ----------
        on_crash : callable
            Makes the result of a user whose worker process died, given the reason.
        tick : callable
            Called as work proceeds, for a progress bar, with the arguments it has there. What it
            raises ends the work.
        """
        ...
