"""``python -m srs_eval.fit`` fits to all reviews of a log; in Python, `srs_eval.fit` does."""

import sys

if __name__ == "__main__":
    from srs_eval.commands.cli import main

    main("commands.fit")
else:
    from srs_eval.api.fitting import fit

    # The import system makes this an attribute of srs_eval, where a module would hide the function.
    sys.modules[__name__] = fit  # type: ignore[assignment]
