"""``python -m srs_eval.power``: how many users a comparison of two models needs."""

from srs_eval.commands.arguments import exit_with
from srs_eval.commands.power import command

if __name__ == "__main__":
    exit_with(command)
