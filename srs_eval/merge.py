"""``python -m srs_eval.merge``: end runs whose users were shared among several commands."""

from srs_eval.commands.cli import main

if __name__ == "__main__":
    main("commands.merge")
