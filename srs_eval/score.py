"""``python -m srs_eval.score``; in Python, `srs_eval.score` is the function."""

from srs_eval.runs.commands import main

main("score", __name__)
