"""A command whose arguments come in one text, as those of MLproject do.

``python -m srs_eval.commands.mlproject srs_eval "data=anki 'data.path=my cards.colpkg'"`` is
``python -m srs_eval data=anki 'data.path=my cards.colpkg'``. Texts are split at spaces that are not
quoted, and nothing else of a shell is done: no variables, no patterns, no further commands.
"""

from __future__ import annotations

import runpy
import shlex
import sys
from collections.abc import Sequence

from srs_eval.text.console import complain


def main() -> None:
    """Run the module that the first word names, on the words in all texts that follow."""
    module, *texts = sys.argv[1:]
    try:
        words = words_in(texts)
    except ValueError as error:
        complain(f"{' '.join(texts)}: {str(error).lower()}")
        sys.exit(2)
    sys.argv = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def words_in(texts: Sequence[str]) -> list[str]:
    """Split texts as a shell splits a command line, quotes and backslashes included.

    Raises
    ------
    ValueError
        If a quotation is not closed.

    Examples
    --------
    >>> words_in(["algo=avg", "", "data=anki 'data.path=my cards.colpkg'"])
    ['algo=avg', 'data=anki', 'data.path=my cards.colpkg']
    """
    return [word for text in texts for word in shlex.split(text)]


if __name__ == "__main__":
    main()
