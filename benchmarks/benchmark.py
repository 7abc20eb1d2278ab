"""Benchmarks as programs: a function that returns a table, which is printed and published.

python benchmarks/peers.py peers=fsrs-rs                    print the table
python benchmarks/engine.py publish                         and write it into the README
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, validate_call
from tabulate import tabulate

PAGE = Path(__file__).with_name("README.md")
# What is typed with commas between; a comma before a space is one of a name.
_PARTS = BeforeValidator(lambda text: tuple(re.split(",(?! )", text)))
Words = Annotated[tuple[str, ...], _PARTS]
Numbers = Annotated[tuple[int, ...], _PARTS]
Program = Callable[..., str]


def benchmark(name: str = "") -> Callable[[Program], Program]:
    """Let a function be what its file does as a program; it is the last of the file.

    Its arguments are typed as KEY=VALUE, or in their order. What it returns is printed and, with
    the word *publish*, written between the marks of the name in the README.
    """

    def program(function: Program) -> Program:
        if function.__module__ == "__main__":
            words = [word for word in sys.argv[1:] if word != "publish"]
            keys: dict[str, Any] = dict(word.split("=", 1) for word in words if "=" in word)
            places = [word for word in words if "=" not in word]
            text = validate_call(function)(*places, **keys)
            print(text)
            if "publish" in sys.argv:
                begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
                before, rest = PAGE.read_text("utf-8").split(begin)
                page = f"{before}{begin}\n{text}\n\n{end}{rest.split(end)[1]}"
                PAGE.write_text(page, "utf-8")
        return function

    return program


def table(headers: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Format rows in Markdown: text on the left, then numbers."""
    cells = [[f"{each:,}" if isinstance(each, int) else str(each) for each in row] for row in rows]
    sides = ["left", *["right"] * (len(headers) - 1)]
    return tabulate(cells, headers, tablefmt="github", colalign=sides, disable_numparse=True)
