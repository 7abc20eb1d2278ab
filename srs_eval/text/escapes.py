"""Escapes for each output format, so that names from files are not markup or formulas.

Those of HTML are in `srs_eval.text.pages`.
"""

from __future__ import annotations

import re
from typing import Any

from srs_eval.text.plain import one_line

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
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
# After \\ and \midrule, LaTeX reads these as an argument, also on the next line.
_LATEX_ARGUMENTS = ("[", "*")
# Spreadsheets evaluate text cells with these prefixes; in East Asian settings, wide forms too.
_FORMULAS = tuple("=+-@\uff1d\uff0b\uff0d\uff20")
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
_MARKDOWN_BLOCK = re.compile(r"^(\s*)(?:([#>+=-])|(\d+)([.)]))")


def for_latex(text: str) -> str:
    """Escape text for the body of a LaTeX document."""
    return "".join(_LATEX.get(sign, sign) for sign in one_line(text))


def for_latex_row(text: str) -> str:
    """Escape text at the beginning of a row of a LaTeX table."""
    cell = for_latex(text)
    return f"{{}}{cell}" if cell.lstrip().startswith(_LATEX_ARGUMENTS) else cell


def for_latex_comment(text: str) -> str:
    """Format text as a one-line comment of LaTeX."""
    return f"% {one_line(text)}"


def for_csv(value: Any) -> Any:
    """Prefix text that a spreadsheet would evaluate with an apostrophe; keep numbers."""
    if not isinstance(value, str):
        return value
    line = one_line(value)
    return f"'{line}" if line.lstrip().startswith(_FORMULAS) else line


def for_markdown(text: str) -> str:
    """Escape text within a line of Markdown, such as a cell of a table."""
    return _IN_MARKDOWN.sub(lambda found: _MARKDOWN[found[0].lower()], one_line(text))


def for_markdown_line(text: str) -> str:
    """Escape text that begins a line of Markdown, where it could begin a heading or a list."""
    return _MARKDOWN_BLOCK.sub(_escaped_block, for_markdown(text.strip()))


def _escaped_block(found: re.Match[str]) -> str:
    blank, sign, number, end = found.groups()
    return f"{blank}\\{sign}" if sign else f"{blank}{number}\\{end}"
