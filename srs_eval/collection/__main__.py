"""``python -m srs_eval.collection``: what FSRS is worth on a collection, in words."""

from srs_eval.commands.cli import main

if __name__ == "__main__":
    main("collection.command")
