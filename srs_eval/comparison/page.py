"""Pages from templates, in which everything is escaped that is not markup of a template.

Templates are files beside the modules that fill them, named from the folder of the package.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from srs_eval.comparison.words import one_line

_PACKAGE = Path(__file__).parents[1]


def render(template: str, **values: Any) -> str:
    """Fill a template."""
    return TEMPLATES.get_template(template).render(values)


def _plain(value: Any) -> Any:
    """Clean a text before it is escaped: it may come from a file of a stranger."""
    return one_line(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _content(file: str) -> Markup:
    """Return the content of a file of the package, such as a style sheet."""
    return Markup((_PACKAGE / file).read_text(encoding="utf-8"))


TEMPLATES = Environment(
    loader=FileSystemLoader(_PACKAGE),
    autoescape=True,
    finalize=_plain,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
TEMPLATES.globals.update(content=_content)
