"""``python -m srs_eval.compare``; in Python, `srs_eval.compare` is the function."""

import sys

if __name__ == "__main__":
    from srs_eval.runs.commands import main

    main("compare")
else:
    from srs_eval.api import compare

    # The import system makes this an attribute of srs_eval, where a module would hide the function.
    sys.modules[__name__] = compare  # type: ignore[assignment]
