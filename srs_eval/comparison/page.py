"""Tables as text, Markdown, LaTeX and CSV, where names are no markup; pages from templates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from tabulate import LATEX_ESCAPE_RULES, tabulate

from srs_eval.comparison.words import number, one_line, shortened

WIDTH, _FEWEST_LETTERS = 80, 6  # Of a terminal, and of a shortened name
_PACKAGE = Path(__file__).parents[1]
_MARKDOWN = re.compile(r"[\\`*_|~$&<]|(?<=\])[(\[:]|(?<=:)/(?=/)|(?i:(?<=www)\.)")
# Spreadsheets evaluate text cells that begin so; in East Asian settings, wide forms too.
_FORMULAS = tuple("=+-@\uff1d\uff0b\uff0d\uff20")


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of values: text, counts, and scores, of which NaN is shown as nothing."""

    headers: Sequence[str]
    rows: Sequence[Sequence[Any]]
    align: str = "l"  # Of the first columns, l or r as in LaTeX; the others are aligned right
    title: str = ""

    @classmethod
    def of(cls, frame: pd.DataFrame, index: str | None = None, **options: str) -> Table:
        """Return the table of a frame, with its index first where that has a header."""
        headers = [*map(str, frame)] if index is None else [index, *map(str, frame)]
        rows = frame.astype(object).itertuples(index=index is not None, name=None)
        return cls(headers, [*rows], **options)

    @property
    def alignment(self) -> str:
        """Alignment of every column."""
        return self.align.ljust(len(self.headers), "r")

    def texts(self) -> list[list[str]]:
        """Return each row as it is shown."""
        return [[*map(_text, row)] for row in self.rows]

    def write(self, style: Literal["text", "pipe", "latex_booktabs"] = "text") -> str:
        """Format the cells for a terminal, for Markdown, or for LaTeX."""
        escape = for_markdown if style == "pipe" else one_line
        headers, *body = [[*map(escape, row)] for row in (self.headers, *self.texts())]
        if style != "text":
            sides = ["left" if side == "l" else "right" for side in self.alignment]
            written = tabulate(body, headers, style, colalign=sides or None, disable_numparse=True)
            # `[` and `*` at the beginning of a row are arguments in LaTeX
            return re.sub(r"(?m)^ *(?=[\[*])", "{}", written)
        sizes = [max(map(len, column)) for column in zip(headers, *body, strict=True)]
        if (wider := sum(sizes) + 2 * len(sizes) - 2 - WIDTH) > 0:
            sizes[0] = max(sizes[0] - wider, _FEWEST_LETTERS)
            body = [[shortened(first, sizes[0]), *others] for first, *others in body]
        rows = [headers, ["-" * size for size in sizes], *body]
        signs = ["<" if side == "l" else ">" for side in self.alignment]
        cells = [[f"{c:{s}{n}}" for c, s, n in zip(r, signs, sizes, strict=True)] for r in rows]
        return "\n".join("  ".join(row).rstrip() for row in cells)


class Part(NamedTuple):
    """A part of a page that is folded."""

    title: str
    lines: Sequence[str] = ()
    tables: Sequence[Table] = ()


def render(template: str, **values: Any) -> str:
    """Fill a template of the package; text, which may be a stranger's, is cleaned and escaped."""
    templates = Environment(
        loader=FileSystemLoader(_PACKAGE),
        autoescape=True,
        finalize=lambda value: one_line(value) if type(value) is str else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return templates.get_template(template).render(values)


def for_latex(text: str) -> str:
    """Escape text for LaTeX."""
    return one_line(text).translate(str.maketrans(dict[str, Any](LATEX_ESCAPE_RULES)))


def for_markdown(text: str) -> str:
    """Escape text for Markdown, also where it could begin a heading or a list."""
    line = _MARKDOWN.sub(r"\\\g<0>", one_line(text).strip())
    return re.sub(r"^(?:(\d+)(?=[.)](\s|$))|(?=[#>=]|[+-](?!\d)))", r"\1\\", line)


def for_csv(value: Any) -> Any:
    """Write text that a spreadsheet would evaluate with an apostrophe first; keep numbers."""
    if not isinstance(value, str):
        return value
    line = one_line(value)
    return f"'{line}" if line.lstrip().startswith(_FORMULAS) else line


def _text(value: Any) -> str:
    if isinstance(value, float):
        return number(value)
    return f"{value:,}" if isinstance(value, int) else str(value)
