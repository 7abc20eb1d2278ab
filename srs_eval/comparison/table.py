"""The one table: cells are given once, and written as text, Markdown, LaTeX or HTML."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tabulate import DataRow, Line, TableFormat, tabulate

from srs_eval.comparison.escapes import for_latex, for_markdown
from srs_eval.comparison.words import number, one_line

Style = Literal["text", "markdown", "latex"]
# tabulate's own format for booktabs escapes every cell once more.
_BOOKTABS = TableFormat(
    lineabove=Line("\\toprule", "", "", ""),
    linebelowheader=Line("\\midrule", "", "", ""),
    linebetweenrows=None,
    linebelow=Line("\\bottomrule", "", "", ""),
    headerrow=DataRow("", " & ", " \\\\"),
    datarow=DataRow("", " & ", " \\\\"),
    padding=0,
    with_header_hide=None,
)
# Style of tabulate, and escape of cells
_STYLES: Mapping[Style, tuple[str | TableFormat, Callable[[str], str]]] = {
    "text": ("", one_line),
    "markdown": ("pipe", for_markdown),
    "latex": (_BOOKTABS, for_latex),
}


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
        form, escape = _STYLES[style]
        body = [[escape(text) for text in row] for row in self.texts()]
        sides = ["left" if side == "l" else "right" for side in self.alignment]
        headers = [escape(name) for name in self.headers]
        if style == "text":  # tabulate makes columns wider than they need to be
            sizes = [max(map(len, column)) for column in zip(headers, *body, strict=True)]
            rows = [headers, ["-" * size for size in sizes], *body]
            signs = ["<" if side == "l" else ">" for side in self.alignment]
            cells = [[f"{c:{s}{n}}" for c, s, n in zip(r, signs, sizes, strict=True)] for r in rows]
            return "\n".join("  ".join(row).rstrip() for row in cells)
        return tabulate(body, headers, tablefmt=form, colalign=sides or None, disable_numparse=True)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return number(value)
    return f"{value:,}" if isinstance(value, int) else str(value)
