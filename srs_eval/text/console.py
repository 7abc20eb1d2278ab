"""Output of the command: plain text, the same on a terminal and in a pipe.

Names from files may contain control sequences of terminals; they are printed as escape sequences.
"""

from __future__ import annotations

import math
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from srs_eval.text.addresses import without_secrets
from srs_eval.text.plain import printable, shortened


def say(text: str = "") -> None:
    """Write a line to standard output and flush; a closed pipe is not an error."""
    try:
        with _room():
            sys.stdout.write(printable(text) + "\n")
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader has closed the pipe, as with "| head"; the run continues to write its files.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(text: str) -> None:
    """Write an error to standard error, without the secrets of the environment."""
    with _room():
        sys.stderr.write(f"srs_eval: {shortened(printable(without_secrets(text)))}\n")
        sys.stderr.flush()


def _room() -> AbstractContextManager[None]:
    """Let the progress bar of an evaluation that goes on make room for a line."""
    bars = sys.modules.get("tqdm")
    room: AbstractContextManager[None] = bars.tqdm.external_write_mode() if bars else nullcontext()
    return room


def facts(pairs: Mapping[str, str]) -> str:
    """Format names and values, one pair per line."""
    width = max(len(name) for name in pairs)
    indent = "\n" + " " * (width + 2)
    return "\n".join(
        f"{name:<{width}}  {value.replace(chr(10), indent)}" for name, value in pairs.items()
    )


def number(value: float, digits: int = 4) -> str:
    """Format a score; a dash if it is undefined."""
    return "-" if math.isnan(value) else f"{value:z.{digits}f}"


def percent(value: float, digits: int = 1, *, sign: bool = False) -> str:
    """Format a share in percent; a dash if it is undefined.

    >>> percent(0.8954), percent(-0.004, sign=True), percent(float("nan"))
    ('89.5 %', '-0.4 %', '-')
    """
    return "-" if math.isnan(value) else f"{100 * value:{'+' if sign else ''}z.{digits}f} %"


def interval(low: float, high: float, digits: int = 4) -> str:
    """Format an interval, with enough digits to show the signs of its bounds.

    A dash stands for no interval.
    """
    if math.isnan(low) or math.isnan(high):
        return "-"
    nearest = min((abs(bound) for bound in (low, high) if bound), default=math.inf)
    while nearest < 0.5 * 10.0**-digits and digits < 9:
        digits += 1
    return f"[{low:z.{digits}f}, {high:z.{digits}f}]"


def counted(count: float, noun: str) -> str:
    """Format a count with its noun.

    >>> counted(1, "review"), counted(1200, "review")
    ('1 review', '1,200 reviews')
    """
    return f"{round(count):,} {noun}{'s' * (round(count) != 1)}"


def listed(names: Sequence[object], most: int = 5) -> str:
    """List the first names and count the others.

    >>> listed("abcd", 2)
    'a, b and 2 more'
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + more


def shell(words: Sequence[str]) -> str:
    """Quote a command for a shell."""
    return shlex.join(words)
