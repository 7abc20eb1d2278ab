"""``python -m srs_eval.watch``: look every night at what an app predicted."""

from srs_eval.commands.cli import main

if __name__ == "__main__":
    main("watch.command")
