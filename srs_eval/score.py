"""``python -m srs_eval.score``; in Python, `srs_eval.score` is the function."""

import sys

if __name__ == "__main__":
    from srs_eval.runs.commands import main

    main("score")
else:
    from srs_eval.metrics.score import score

    # The import system makes this an attribute of srs_eval, where a module would hide the function.
    sys.modules[__name__] = score  # type: ignore[assignment]
