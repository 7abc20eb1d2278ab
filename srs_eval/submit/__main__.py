"""``python -m srs_eval.submit``: write, check, verify and accept submissions."""

from srs_eval.commands.arguments import exit_with
from srs_eval.submit.command import command

if __name__ == "__main__":
    exit_with(command)
