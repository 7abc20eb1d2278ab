"""``python -m srs_eval.fit``; in Python, `srs_eval.fit` is the function."""

import sys

if __name__ == "__main__":
    from srs_eval.runs.commands import main

    main("fit")
else:
    from srs_eval.fitting import fit

    # The import system makes this an attribute of srs_eval, where a module would hide the function.
    sys.modules[__name__] = fit  # type: ignore[assignment]
