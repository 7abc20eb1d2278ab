"""``python -m srs_eval.power``: how many users a comparison of two models needs."""

from srs_eval.commands.cli import main

if __name__ == "__main__":
    main("commands.power")
