"""Fits that failed: the code that raised, and a stop where all of them fail alike."""

from __future__ import annotations

import re
from collections.abc import Sequence

from srs_eval.errors import FailedAlikeError
from srs_eval.nouns import Fit
from srs_eval.results.fit_counts import bare_reason, reason_of
from srs_eval.text.frames import own_frames

_USERS = 3


def frame_lines(fit: Fit) -> list[str]:
    """Return the last frames in code of the plug-in, one line each."""
    return [f"  {frame}" for frame in own_frames(fit.traceback)]


class FailingAlike:
    """Stops an evaluation whose first users, of so many, all fail alike."""

    def __init__(self, users: int) -> None:
        self._of_users = users
        self._failed: list[Fit] = []
        self._is_over = False

    def end(self) -> None:
        """Stop no more: a fit worked, or was made before."""
        self._is_over = True

    def add(self, failed: Sequence[Fit]) -> None:
        """Add the failed fits of users without a fit that worked.

        Raise `FailedAlikeError` if these are enough users, others are left, and all their fits
        failed alike.
        """
        if self._is_over:
            return
        self._failed += [fit for fit in failed if fit.fold >= 0]
        users = len({fit.user for fit in self._failed})
        if len({_kind(fit) for fit in self._failed}) > 1 or users == self._of_users:
            self.end()
        elif users >= _USERS:
            first = self._failed[0]
            said = f"stopped after {users} of {self._of_users:,} users: all {len(self._failed)}"
            said += f" fits failed alike, the first {reason_of(first)}"
            lines = [said, *frame_lines(first), *filter(None, [first.traceback.rstrip()])]
            raise FailedAlikeError("\n".join([*lines, "fail_fast=false evaluates all users."]))


def _kind(fit: Fit) -> tuple[str, str]:
    """Return what is alike in failures of one cause: reasons without numbers, and the line."""
    frames = own_frames(fit.traceback)
    at = f"{frames[-1].file}:{frames[-1].line}" if frames else ""
    return re.sub(r"\d+", "#", bare_reason(fit)), at
