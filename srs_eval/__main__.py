"""`python -m srs_eval`: run one algorithm, or several with ``-m``."""

from srs_eval.compute import stopping


def main() -> None:
    """Run the command and exit: 0 all well, 1 a fit or job failed, 2 not understood."""
    stopping.run(_command)


def _command() -> int:
    from srs_eval.commands.run import run_words  # takes a second, in which Ctrl-C is heard already

    return run_words()


if __name__ == "__main__":
    main()
