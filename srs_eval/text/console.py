"""What the command says: plain text, the same on a terminal and in a pipe.

Names from files may hold control sequences of terminals; they are printed as escape sequences.
"""

from __future__ import annotations

import math
import os
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence

from tabulate import tabulate

from srs_eval.text.plain import one_line, printable


def say(text: str = "") -> None:
    """Write a line to standard output at once; nobody needs to be reading."""
    try:
        sys.stdout.write(printable(text) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has left, as with "| head"; the run goes on for the sake of its files.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(text: str) -> None:
    """Write an error to standard error."""
    sys.stderr.write(f"srs_eval: {printable(text)}\n")
    sys.stderr.flush()


def facts(pairs: Mapping[str, str]) -> str:
    """Lay out named facts, one a line."""
    width = max(len(name) for name in pairs)
    indent = "\n" + " " * (width + 2)
    return "\n".join(
        f"{name:<{width}}  {value.replace(chr(10), indent)}" for name, value in pairs.items()
    )


def table(rows: Iterable[Sequence[object]], headers: Sequence[str], *, text: int = 1) -> str:
    """Lay out rows under headers; the first `text` columns are text, the rest numbers."""
    body = [[one_line(str(cell)) for cell in row] for row in rows]
    align = ["left"] * text + ["right"] * (len(headers) - text)
    return tabulate(body, headers, tablefmt="simple", colalign=align, disable_numparse=True)


def number(value: float, digits: int = 4) -> str:
    """Print a score; a dash where it is not defined."""
    return "-" if math.isnan(value) else f"{value:z.{digits}f}"


def interval(low: float, high: float, digits: int = 4) -> str:
    """Print an interval, with the digits that show on which side of 0 its bounds are.

    A dash stands for no interval.
    """
    if math.isnan(low) or math.isnan(high):
        return "-"
    nearest = min((abs(bound) for bound in (low, high) if bound), default=math.inf)
    while nearest < 0.5 * 10.0**-digits and digits < 9:
        digits += 1
    return f"[{low:z.{digits}f}, {high:z.{digits}f}]"


def shell(words: Sequence[str]) -> str:
    """Quote a command so that it can be pasted."""
    return shlex.join(words)
