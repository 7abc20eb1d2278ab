"""``python -m srs_eval.export``."""

from srs_eval.runs.commands import main

if __name__ == "__main__":
    main("export")
