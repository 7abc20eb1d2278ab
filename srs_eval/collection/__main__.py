"""``python -m srs_eval.collection``: what FSRS is worth on a collection, in words."""

from srs_eval.collection.command import command
from srs_eval.commands.arguments import exit_with

if __name__ == "__main__":
    exit_with(command)
