"""``python -m srs_eval.compare``; in Python, `srs_eval.compare` is the function."""

from srs_eval.runs.commands import main

main("compare", __name__)
