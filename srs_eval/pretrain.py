"""``python -m srs_eval.pretrain``: let an algorithm learn from other users once."""

from srs_eval.commands.arguments import exit_with
from srs_eval.commands.pretrain import command

if __name__ == "__main__":
    exit_with(command)
