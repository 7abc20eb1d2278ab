"""Suggestions for misspelt names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def suggestion(name: str, known: Iterable[str], *, form: str = "{!r}", otherwise: str = "") -> str:
    """Return the end of an error message that suggests the known name closest to a misspelt one.

    `form` is how the suggestion is written, `otherwise` the result where no name is similar.

    >>> suggestion("lsmt", ["avg", "lstm"])
    "; did you mean 'lstm'?"
    """
    close = difflib.get_close_matches(name, sorted(known), n=1)
    return f"; did you mean {form.format(close[0])}?" if close else otherwise
