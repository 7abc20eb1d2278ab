"""`python -m srs_eval`: run one algorithm, or several with ``-m``."""

import signal
import sys

from srs_eval.engine import cpu as cpu  # before anything imports NumPy
from srs_eval.runs.options import help_page
from srs_eval.runs.words import say, spare_garbage


def main() -> None:
    """Print the help, or run the command and exit."""
    words = sys.argv[1:]
    if {"-h", "--help"} & {*words}:
        say(help_page(words))
        return
    spare_garbage()
    from srs_eval.runs import cli  # With Hydra: not for --help

    try:
        cli.main()
    finally:  # all is done: what ends it now ends it at once
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)


if __name__ == "__main__":
    main()
