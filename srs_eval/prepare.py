"""``python -m srs_eval.prepare``."""

from srs_eval.runs.commands import main

if __name__ == "__main__":
    main("prepare")
