"""``python -m srs_eval.site``: a static site of leaderboards."""

from srs_eval.commands.arguments import exit_with
from srs_eval.site.command import command

if __name__ == "__main__":
    exit_with(command)
