"""Pages from templates, in which everything is escaped that is not markup of a template.

Templates are files beside the modules that fill them, named from the folder of the package.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from srs_eval.comparison.words import one_line

_PACKAGE = Path(__file__).parents[1]


def render(template: str, **values: Any) -> str:
    """Fill a template; text is cleaned before it is escaped: it may come from a stranger's file."""
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
