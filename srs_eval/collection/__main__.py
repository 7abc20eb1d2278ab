"""``python -m srs_eval.collection``: what FSRS is worth on a collection, in words."""

import sys

from srs_eval.collection.command import Collection, report
from srs_eval.runs.words import status

if __name__ == "__main__":
    sys.exit(status(Collection, report, sys.argv[1:]))
