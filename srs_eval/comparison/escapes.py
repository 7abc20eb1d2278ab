"""Names from files must be no markup and no formula in the formats of tables."""

from __future__ import annotations

import re
from typing import Any

from srs_eval.comparison.words import one_line

_LATEX: dict[str, str | int | None] = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "≥": r"$\geq$",
    "\N{NO-BREAK SPACE}": "~",
    "°": r"\textdegree{}",
    "†": r"\dag{}",
    "‡": r"\ddag{}",
    "§": r"\S{}",
}
_MARKDOWN = {
    **{sign: f"\\{sign}" for sign in "\\`*_|~$"},
    "&": "&amp;",
    "<": "&lt;",
    "](": "]\\(",
    "][": "]\\[",
    "]:": "]\\:",
    "://": ":\\//",
    "www.": "www\\.",
}
_IN_MARKDOWN = re.compile("|".join(map(re.escape, _MARKDOWN)), re.IGNORECASE)
# Spreadsheets evaluate text cells that begin so; in East Asian settings, wide forms too.
_FORMULAS = tuple("=+-@\uff1d\uff0b\uff0d\uff20")


def for_latex(text: str) -> str:
    """Escape text for LaTeX, also at the beginning of a row, where `[` and `*` are arguments."""
    escaped = one_line(text).translate(str.maketrans(_LATEX))
    return f"{{}}{escaped}" if escaped.lstrip().startswith(("[", "*")) else escaped


def for_markdown(text: str) -> str:
    """Escape text within a line of Markdown, such as a cell of a table."""
    return _IN_MARKDOWN.sub(lambda sign: _MARKDOWN[sign[0].lower()], one_line(text))


def for_markdown_line(text: str) -> str:
    """Escape text that begins a line of Markdown, where it could begin a heading or a list."""
    line = re.sub(r"^(\d+)([.)])", r"\1\\\2", for_markdown(text.strip()))
    return re.sub(r"^([#>+=-])", r"\\\1", line)


def for_csv(value: Any) -> Any:
    """Write text that a spreadsheet would evaluate with an apostrophe first; keep numbers."""
    if not isinstance(value, str):
        return value
    line = one_line(value)
    return f"'{line}" if line.lstrip().startswith(_FORMULAS) else line
