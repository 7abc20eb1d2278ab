"""``python -m srs_eval.export``: hand fitted parameters to a scheduler."""

from srs_eval.commands.arguments import exit_with
from srs_eval.commands.export import command

if __name__ == "__main__":
    exit_with(command)
