"""A command whose arguments are in one string, as in MLproject.

``python -m srs_eval.commands.mlproject srs_eval "data=anki 'data.path=my cards.colpkg'"`` is
``python -m srs_eval data=anki 'data.path=my cards.colpkg'``. Strings are split at unquoted spaces;
other features of a shell are not supported: no variables, no patterns, no further commands.
"""

from __future__ import annotations

import runpy
import shlex
import sys
from collections.abc import Sequence

from srs_eval.text.console import complain


def main() -> None:
    """Run the module in the first argument on the arguments in all following strings."""
    module, *texts = sys.argv[1:]
    try:
        words = words_in(texts)
    except ValueError as error:
        complain(f"{' '.join(texts)}: {str(error).lower()}")
        sys.exit(2)
    sys.argv = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def words_in(texts: Sequence[str]) -> list[str]:
    """Split strings as a shell splits a command line, quotes and backslashes included.

    Raises
    ------
    ValueError
        If a quotation mark is not closed.

    Examples
    --------
    >>> words_in(["algo=avg", "", "data=anki 'data.path=my cards.colpkg'"])
    ['algo=avg', 'data=anki', 'data.path=my cards.colpkg']
    """
    return [word for text in texts for word in shlex.split(text)]


if __name__ == "__main__":
    main()
