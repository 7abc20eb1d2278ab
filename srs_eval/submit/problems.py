"""Problems of submissions: what is wrong, where, and how to correct it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.text.console import listed
from srs_eval.text.plain import one_line

Kind = Literal[
    "file",  # a file or folder that must not be there, is missing, too large or damaged
    "form",  # a key, column or value that is missing, unknown, repeated or of another type
    "gap",  # a value that its author has to write
    "range",  # a number out of bounds, NaN or infinite
    "rows",  # other users or reviews than those of the protocol, or that were learned from
    "scores",  # scores of no predictions, of other predictions or of another submission
    "facts",  # what contradicts the algorithm, the protocol, the scores or the record
    "code",  # code that is not run
]
_LONGEST = 80


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a submission that has to be corrected."""

    kind: Kind  # Class of the problem
    file: Path  # File or folder
    where: str  # Line and key, column, or user; "" for the whole file
    value: str  # What was found
    advice: str  # How to correct it

    def __str__(self) -> str:
        where = f"{self.file}: {self.where}" if self.where else str(self.file)
        return one_line(f"{where}: {self.value}; {self.advice}")


# What reading a file of strangers can raise.
ERRORS = (
    SrsEvalError,
    OSError,
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)


class SubmissionError(ConfigError):
    """Submissions that cannot be used; it has every problem, of which there is at least one."""

    def __init__(self, found: Iterable[Problem]) -> None:
        self.found = tuple(found)
        super().__init__(*map(str, self.found))


def caught(file: Path, problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yield problems; an error is one more, and does not stop the check of other submissions."""
    try:
        yield from problems
    except SubmissionError as error:
        yield from error.found
    except ERRORS as error:
        found = f"{type(error).__name__}: {shown(str(error))}"
        yield Problem("file", file, "", found, "write it again with srs_eval.submit")


def shown(value: object) -> str:
    """Return a value for a message: in quotes if it is text, and not longer than a line."""
    text = one_line(repr(value) if isinstance(value, str) else str(value))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def some(values: Iterable[object]) -> str:
    """Return the first of some values for a message, and the number of the others."""
    return listed([shown(value) for value in values])
