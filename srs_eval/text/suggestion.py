"""Suggestions for misspelt names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def suggestion(
    name: str, known: Iterable[str], *, form: str = "{!r}", otherwise: str = "", cutoff: float = 0.6
) -> str:
    """Return the end of an error message that suggests the closest known name.

    Parameters
    ----------
    name : str
        The misspelt name.
    known : iterable of str
        Names to choose from.
    form : str
        How the suggested name is written.
    otherwise : str
        What to return if no known name is close.
    cutoff : float
        Required similarity, from 0 to 1.

    Examples
    --------
    >>> suggestion("lsmt", ["avg", "lstm"])
    "; did you mean 'lstm'?"
    """
    close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=cutoff)
    return f"; did you mean {form.format(close[0])}?" if close else otherwise
