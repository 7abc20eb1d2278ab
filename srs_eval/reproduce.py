"""``python -m srs_eval.reproduce``: evaluate the models of published results again."""

from srs_eval.commands.cli import main

if __name__ == "__main__":
    main("commands.reproduce")
