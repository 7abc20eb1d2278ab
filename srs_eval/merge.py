"""``python -m srs_eval.merge``: end runs whose users were shared among several commands."""

from srs_eval.commands.arguments import exit_with
from srs_eval.commands.merge import command

if __name__ == "__main__":
    exit_with(command)
