"""``python -m srs_eval.submit``: write, check, verify and accept submissions."""

from srs_eval.commands.cli import main

if __name__ == "__main__":
    main("submit.command")
