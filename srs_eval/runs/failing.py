"""Stop where all fits of the first users fail alike."""

from __future__ import annotations

import re
from collections.abc import Sequence

from srs_eval.errors import FailedAlikeError
from srs_eval.nouns import Fit, User
from srs_eval.runs.summary import reason_of

_FAILING_USERS = 3


class FailingAlike:
    """Stops an evaluation of which all fits of the first users fail alike."""

    def __init__(self, of_users: int, *, on: bool) -> None:
        self._of_users, self._is_on = of_users, on
        self._failed: list[Fit] = []

    @property
    def users(self) -> list[User]:
        """The users who failed."""
        return list(dict.fromkeys(fit.user for fit in self._failed))

    def add(self, fits: Sequence[Fit], *, was_done: bool) -> None:
        """Add a user; raise `FailedAlikeError` if there are enough and others are left."""
        self._is_on &= not was_done and not any(fit.predicts for fit in fits)
        if not self._is_on:
            return
        self._failed += [f for f in fits if f.status == "failed" and f.fold >= 0]
        users = len(self.users)
        self._is_on = len({_kind(fit) for fit in self._failed}) < 2 and users < self._of_users
        if self._is_on and users >= _FAILING_USERS:
            first = self._failed[0]
            raise FailedAlikeError(
                f"stopped after {users} of {self._of_users:,} users: all {len(self._failed)} fits "
                f"failed alike, the first {reason_of(first)}\n{_last_frame(first)}"
                "fail_fast=false evaluates all users"
            )


def _kind(fit: Fit) -> str:
    """Return what is alike in failures of one cause: reasons without numbers, and the line."""
    reason = reason_of(fit).partition(": ")[2]
    return re.sub(r"\d+", "#", reason) + _last_frame(fit)


def _last_frame(fit: Fit) -> str:
    """Return the last line of a traceback that names a file."""
    lines = [line for line in fit.traceback.splitlines() if line.startswith('  File "')]
    return f"{lines[-1]}\n" if lines else ""
