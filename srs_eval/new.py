"""``python -m srs_eval.new``: begin an algorithm, a metric or a source of your own."""

from srs_eval.commands.cli import main

if __name__ == "__main__":
    main("commands.new")
