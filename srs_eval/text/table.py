"""The one table: cells are given once, and written as text, Markdown, LaTeX, HTML or CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from tabulate import DataRow, Line, TableFormat, tabulate

from srs_eval.text.console import number
from srs_eval.text.escapes import for_csv, for_latex, for_latex_row, for_markdown
from srs_eval.text.plain import one_line

Style = Literal["text", "github", "markdown", "latex"]
# tabulate's own format for booktabs would escape cells a second time.
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
# Style of tabulate, escapes of cells and of the first cell of a row, and bold text.
_Escape = Callable[[str], str]
_STYLES: Mapping[Style, tuple[str | TableFormat, _Escape, _Escape, str]] = {
    "text": ("simple", one_line, one_line, "{}"),
    "github": ("github", one_line, one_line, "{}"),  # of the book, whose words are ours
    "markdown": ("pipe", for_markdown, for_markdown, "**{}**"),
    "latex": (_BOOKTABS, for_latex, for_latex_row, r"\textbf{{{}}}"),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell that is more than a value."""

    text: str
    below: str = ""  # Second, smaller line
    shade: float = 0.0  # From -1 (in favour of the row) to 1 (against it)

    def __str__(self) -> str:
        return f"{self.text} {self.below}".strip()

    @property
    def tint(self) -> str:
        """Translucent colour: blue in favour, vermilion against, safe for colour blindness."""
        colour = "0 114 178" if self.shade < 0 else "213 94 0"
        return f"rgb({colour} / {0.6 * min(abs(self.shade), 1.0) ** 0.7:.3f})"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of values: text, cells, counts, and scores, of which NaN is shown as a dash."""

    headers: Sequence[str]
    rows: Sequence[Sequence[Any]]
    align: str = "l"  # Of the first columns, l or r as in LaTeX; the others are aligned right
    key: str = ""  # Name in files and links
    title: str = ""
    caption: str = ""
    bold: Collection[int] = ()  # Highlighted rows
    sortable: bool = False  # By a click, in HTML

    @classmethod
    def of_records(cls, records: Sequence[Mapping[str, Any]], **options: Any) -> Self:
        """Return a table of one record or more, which have the same names in the same order."""
        return cls(list(records[0]), [list(each.values()) for each in records], **options)

    @property
    def alignment(self) -> str:
        """Alignment of every column."""
        return self.align.ljust(len(self.headers), "r")

    def cells(self) -> Iterator[list[Cell]]:
        """Yield each row as it is shown."""
        return ([_cell(each) for each in row] for row in self.rows)

    def texts(self) -> list[list[str]]:
        """Return each row as lines of text."""
        return [[*map(str, row)] for row in self.cells()]

    def without(self, *names: str) -> Table:
        """Return the table without some columns."""
        kept = [n for n, name in enumerate(self.headers) if name not in names]
        align = "".join(self.alignment[n] for n in kept)
        rows = [[row[n] for n in kept] for row in self.rows]
        return replace(self, headers=[self.headers[n] for n in kept], rows=rows, align=align)

    def write(self, style: Style = "text") -> str:
        """Format the cells for a terminal, for Markdown, or for the body of a LaTeX table."""
        form, escape, escape_first, bold = _STYLES[style]
        body = []
        for place, (first, *others) in enumerate(self.texts()):
            name = escape_first(first)
            body.append([bold.format(name) if place in self.bold else name, *map(escape, others)])
        sides = ["left" if side == "l" else "right" for side in self.alignment]
        headers = [(escape if n else escape_first)(name) for n, name in enumerate(self.headers)]
        return tabulate(body, headers, tablefmt=form, colalign=sides or None, disable_numparse=True)

    def csv(self) -> str:
        """Format the values in full precision; what is not finite is empty."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(map(for_csv, self.headers))
        writer.writerows([_full(value) for value in row] for row in self.rows)
        return out.getvalue()


def _cell(value: Any) -> Cell:
    if isinstance(value, Cell):
        return value
    if isinstance(value, float):
        return Cell(number(value))
    return Cell(f"{value:,}" if isinstance(value, int) else str(value))


def _full(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return ""
    return for_csv(str(value) if isinstance(value, Cell) else value)
