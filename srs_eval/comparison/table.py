"""The one table: cells are given once, and written as text, Markdown, LaTeX or HTML."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from tabulate import DataRow, Line, TableFormat, tabulate

from srs_eval.comparison.escapes import for_latex, for_markdown
from srs_eval.comparison.words import number, one_line

Style = Literal["text", "markdown", "latex"]
# tabulate's own format for booktabs escapes every cell: none could be bold.
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
# Style of tabulate, escape of cells, and bold text.
_STYLES: Mapping[Style, tuple[str | TableFormat, Callable[[str], str], str]] = {
    "text": ("simple", one_line, "{}"),
    "markdown": ("pipe", for_markdown, "**{}**"),
    "latex": (_BOOKTABS, for_latex, r"\textbf{{{}}}"),
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

    def records(self) -> list[dict[str, str]]:
        """Return the text of each cell by its heading."""
        return [dict(zip(self.headers, row, strict=True)) for row in self.texts()]

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
        columns = [n for n, name in enumerate(self.headers) if name not in names]
        align = "".join(self.alignment[n] for n in columns)
        rows = [[row[n] for n in columns] for row in self.rows]
        return replace(self, headers=[self.headers[n] for n in columns], rows=rows, align=align)

    def write(self, style: Style = "text") -> str:
        """Format the cells for a terminal, for Markdown, or for the body of a LaTeX table."""
        form, escape, bold = _STYLES[style]
        body = [[escape(text) for text in row] for row in self.texts()]
        for place in self.bold:
            body[place][0] = bold.format(body[place][0])
        sides = ["left" if side == "l" else "right" for side in self.alignment]
        headers = [escape(name) for name in self.headers]
        return tabulate(body, headers, tablefmt=form, colalign=sides or None, disable_numparse=True)


def _cell(value: Any) -> Cell:
    if isinstance(value, Cell):
        return value
    if isinstance(value, float):
        return Cell(number(value))
    return Cell(f"{value:,}" if isinstance(value, int) else str(value))
