"""``python -m srs_eval.export``: hand fitted parameters to a scheduler."""

from srs_eval.commands.cli import main

if __name__ == "__main__":
    main("commands.export")
