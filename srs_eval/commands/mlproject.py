"""A command whose arguments are in one string, as in MLproject.

``python -m srs_eval.commands.mlproject srs_eval "data=anki 'data.path=my cards.colpkg'"`` is
``python -m srs_eval data=anki 'data.path=my cards.colpkg'``. Strings are split at unquoted spaces,
as a shell does; its other features are not supported: no variables, no patterns, no more commands.
"""

from __future__ import annotations

import runpy
import shlex
import sys

from srs_eval.text.console import complain


def main() -> None:
    """Run the module in the first argument on the arguments in all following strings."""
    module, *texts = sys.argv[1:]
    try:
        words = [word for text in texts for word in shlex.split(text)]
    except ValueError as error:  # a quotation mark that is not closed
        complain(f"{' '.join(texts)}: {str(error).lower()}")
        sys.exit(2)
    sys.argv = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
