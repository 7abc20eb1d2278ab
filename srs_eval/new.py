"""``python -m srs_eval.new``: begin an algorithm, a metric or a source of your own."""

from srs_eval.commands.arguments import exit_with
from srs_eval.commands.new import command

if __name__ == "__main__":
    exit_with(command)
