"""Benchmarks as programs: a function that returns a table, which is printed and published.

python benchmarks/peers.py peers=fsrs-rs                    print the table
python benchmarks/engine.py publish                         and write it into its page
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, ValidationError, validate_call
from tabulate import tabulate

ROOT = Path(__file__).parents[1]
_PUBLISH = "publish"
# What is typed with commas between; a comma before a space is one of a name.
_PARTS = BeforeValidator(lambda text: tuple(re.split(",(?! )", text)))
Words = Annotated[tuple[str, ...], _PARTS]
Numbers = Annotated[tuple[int, ...], _PARTS]


def benchmark(
    name: str = "", page: str = "benchmarks/README.md"
) -> Callable[[Callable[..., str | None]], Callable[..., str | None]]:
    """Let a function be what its file does as a program; it is the last of the file.

    Its arguments are typed as KEY=VALUE, or in their order. What it returns is printed and, with
    the word *publish*, written between the marks of the name in a page, if it is in one.
    """

    def program(function: Callable[..., str | None]) -> Callable[..., str | None]:
        if function.__module__ == "__main__":
            _run(function, sys.argv[1:], name, ROOT / page)
        return function

    return program


def _run(function: Callable[..., str | None], words: Sequence[str], name: str, page: Path) -> None:
    places = [word for word in words if "=" not in word and word != _PUBLISH]
    keys: dict[str, Any] = dict(word.split("=", 1) for word in words if "=" in word)
    try:
        found = validate_call(function)(*places, **keys)
    except ValidationError as error:
        raise SystemExit(f"{sys.modules['__main__'].__doc__}\n{error}") from error
    text = found or ""
    print(text)
    if _PUBLISH in words:
        page.write_text(published(page.read_text("utf-8"), name, text), "utf-8")


def table(headers: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Format rows in Markdown: text on the left, then numbers."""
    cells = [[_cell(value) for value in row] for row in rows]
    sides = ["left", *["right"] * (len(headers) - 1)]
    return tabulate(cells, headers, tablefmt="github", colalign=sides, disable_numparse=True)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:z.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def published(page: str, name: str, text: str) -> str:
    """Return a page with other text between the marks of a benchmark."""
    between = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.S)
    if not between.search(page):
        raise SystemExit(f"the page has no place for {name!r}")
    return between.sub(lambda found: f"{found[1]}\n{text.strip()}\n\n{found[2]}", page)
