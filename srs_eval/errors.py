"""Everything that can go wrong on a user's side, as exceptions that say what to do."""

from __future__ import annotations

from collections.abc import Sequence


class SrsEvalError(Exception):
    """Base of all errors srs_eval raises on purpose; printed without a traceback."""


class ConfigError(SrsEvalError):
    """An option, key or combination of options that cannot be run."""


class FolderInUseError(SrsEvalError):
    """An output folder that another command is writing to."""


class ReviewLogError(SrsEvalError):
    """A review log that cannot be read, with every violation that was found.

    Parameters
    ----------
    source : str
        The file, table or array that was read.
    violations : sequence of str
        One line each: where (row, column), the value, and what was expected.
    hint : str, optional
        What the person can do about it.
    """

    def __init__(self, source: str, violations: Sequence[str], hint: str = "") -> None:
        self.source = source
        self.violations = tuple(violations)
        self.hint = hint
        lines = [f"{source}: {self.violations[0]}"] if len(self.violations) == 1 else [f"{source}:"]
        if len(self.violations) > 1:
            lines += [f"  - {violation}" for violation in self.violations]
        if hint:
            lines.append(f"  {hint}")
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[type[ReviewLogError], tuple[str, Sequence[str], str]]:
        """Pickle by the arguments, so that worker processes can raise it."""
        return type(self), (self.source, self.violations, self.hint)


class FitError(SrsEvalError):
    """A fit that went wrong; recorded as failed for its user and fold, never replaced."""


class FitSkipped(SrsEvalError):
    """A fit that cannot be made for a stated reason, such as too few training reviews."""


class ScoreError(SrsEvalError):
    """Predictions that cannot be scored: wrong shapes, NaN, or outside [0, 1]."""


class Pruned(Exception):
    """A search would rather try something else: neither a failure nor a result; let it pass."""


class TrackingError(SrsEvalError):
    """The tracking store or server cannot be used; results stay in the output folder."""
