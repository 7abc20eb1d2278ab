"""`python -m srs_eval`: run one algorithm, or several with ``-m``."""

from srs_eval.commands import cli


def main() -> None:
    """Run the command and exit: 0 all well, 1 a fit or job failed, 2 not understood."""
    cli.main("commands.run")


if __name__ == "__main__":
    main()
