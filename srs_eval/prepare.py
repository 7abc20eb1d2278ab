"""``python -m srs_eval.prepare``: sort the reviews of many users once."""

from srs_eval.commands.arguments import exit_with
from srs_eval.commands.prepare import command

if __name__ == "__main__":
    exit_with(command)
