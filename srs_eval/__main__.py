"""`python -m srs_eval`: run one algorithm, or several with ``-m``."""

from srs_eval import cpu as cpu  # before anything imports NumPy
from srs_eval.runs.cli import main

if __name__ == "__main__":
    main()
