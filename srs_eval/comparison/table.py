"""The one table: cells are given once, and written as text, Markdown, LaTeX or HTML."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tabulate import tabulate

from srs_eval.comparison.escapes import for_latex, for_markdown
from srs_eval.comparison.words import number, one_line

Style = Literal["text", "markdown", "latex"]
_ESCAPES: dict[Style, Callable[[str], str]]
_ESCAPES = {"text": one_line, "markdown": for_markdown, "latex": for_latex}


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of values: text, counts, and scores, of which NaN is shown as nothing."""

    headers: Sequence[str]
    rows: Sequence[Sequence[Any]]
    align: str = "l"  # Of the first columns, l or r as in LaTeX; the others are aligned right
    title: str = ""

    @property
    def alignment(self) -> str:
        """Alignment of every column."""
        return self.align.ljust(len(self.headers), "r")

    def texts(self) -> list[list[str]]:
        """Return each row as it is shown."""
        return [[*map(_text, row)] for row in self.rows]

    def write(self, style: Style = "text") -> str:
        """Format the cells for a terminal, for Markdown, or for the body of a LaTeX table."""
        headers, *body = [[*map(_ESCAPES[style], row)] for row in (self.headers, *self.texts())]
        if style == "markdown":
            sides = ["left" if side == "l" else "right" for side in self.alignment]
            return tabulate(body, headers, "pipe", colalign=sides or None, disable_numparse=True)
        if style == "latex":
            first, *rest = [f"{' & '.join(row)} \\\\" for row in (headers, *body)]
            return "\n".join(["\\toprule", first, "\\midrule", *rest, "\\bottomrule"])
        sizes = [max(map(len, column)) for column in zip(headers, *body, strict=True)]
        signs = ["<" if side == "l" else ">" for side in self.alignment]
        rows = [headers, ["-" * size for size in sizes], *body]
        cells = [[f"{c:{s}{n}}" for c, s, n in zip(r, signs, sizes, strict=True)] for r in rows]
        return "\n".join("  ".join(row).rstrip() for row in cells)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return number(value)
    return f"{value:,}" if isinstance(value, int) else str(value)
