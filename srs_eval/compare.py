"""``python -m srs_eval.compare`` compares finished runs; in Python, `srs_eval.compare` does."""

import sys

if __name__ == "__main__":
    from srs_eval.commands.cli import main

    main("commands.compare")
else:
    from srs_eval.api.comparing import compare

    # The import system makes this an attribute of srs_eval, where a module would hide the function.
    sys.modules[__name__] = compare  # type: ignore[assignment]
