"""``python -m srs_eval.prepare``: sort the reviews of many users once."""

from srs_eval.commands.cli import main

if __name__ == "__main__":
    main("commands.prepare")
