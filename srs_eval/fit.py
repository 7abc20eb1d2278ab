"""``python -m srs_eval.fit``; in Python, `srs_eval.fit` is the function."""

from srs_eval.runs.commands import main

main("fit", __name__)
