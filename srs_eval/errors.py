"""Exceptions for errors that a user can correct; their messages say how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Self


class SrsEvalError(Exception):
    """Base class of the errors of srs_eval; printed without a traceback."""


class ConfigError(SrsEvalError):
    """Options or arguments that cannot be used: at least one problem, on a line each.

    The message has all of them.
    """

    def __str__(self) -> str:
        return "\n".join(map(str, self.args))


class FolderInUseError(SrsEvalError):
    """Another command is writing to the output folder."""


class Violation(str):
    """One thing that is wrong with a review log: the line that says so, and what it is about.

    The line has the place (row, column), the value, and the expected value.
    """

    # missing, wrong_type, out_of_range, order, duplicate, length (of columns), empty, unknown
    # (whose rows they are), or source: anything else
    kind: str
    column: str  # as the source calls it; "" for a violation of several columns or of none
    # The first rows that are affected, as the source names them, such as "row 3"
    rows: tuple[str, ...]

    def __new__(
        cls, text: str, kind: str = "source", column: str = "", rows: Sequence[str] = ()
    ) -> Self:
        violation = super().__new__(cls, text)
        violation.kind, violation.column, violation.rows = kind, column, tuple(rows)
        return violation


class ReviewLogError(SrsEvalError):
    """A review log is invalid; the error has every violation, on a line each.

    `source` is the file, table or array that was read; `hint` says how to correct it. A violation
    that is a plain text becomes one of the kind ``source``.
    """

    def __init__(self, source: str, violations: Sequence[str], hint: str = "") -> None:
        self.source = source
        self.violations = tuple(
            each if isinstance(each, Violation) else Violation(each) for each in violations
        )
        self.hint = hint
        lines = [f"{source}:", *(f"  - {violation}" for violation in self.violations)]
        lines = lines if len(lines) > 2 else [f"{source}: {self.violations[0]}"]
        super().__init__("\n".join([*lines, f"  {hint}"] if hint else lines))

    def __reduce__(self) -> tuple[type[ReviewLogError], tuple[str, Sequence[str], str]]:
        """Pickle by the arguments, so that worker processes can raise it."""
        return type(self), (self.source, self.violations, self.hint)


class FitError(SrsEvalError):
    """A fit failed; it is recorded for its user and fold, and never replaced."""


class FailedAlikeError(SrsEvalError):
    """All fits of the first users failed in the same way; the evaluation was stopped."""


class FitSkipped(SrsEvalError):
    """A fit is impossible for a stated reason, such as too few training reviews.

    Where a protocol skips a whole user, `dropped` and `unscored` are as in `Task`.
    """

    def __init__(
        self,
        reason: str = "",
        *,
        dropped: Mapping[str, int] = MappingProxyType({}),
        unscored: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        super().__init__(reason)
        self.dropped, self.unscored = dict(dropped), dict(unscored)


class ScoreError(SrsEvalError):
    """Predictions cannot be scored: wrong shapes, NaN, or outside [0, 1]."""


class Pruned(Exception):
    """A search ends a trial early: neither a failure nor a result; do not catch it."""


class Stopped(SystemExit):
    """The command was told to end, by SIGTERM."""


class TrackingError(SrsEvalError):
    """The tracking store or server cannot be used; results stay in the output folder."""
