"""``python -m srs_eval.score`` scores predictions in a file; in Python, `srs_eval.score` does."""

import sys

if __name__ == "__main__":
    from srs_eval.commands.cli import main

    main("commands.score")
else:
    from srs_eval.metrics.score import score

    # The import system makes this an attribute of srs_eval, where a module would hide the function.
    sys.modules[__name__] = score  # type: ignore[assignment]
