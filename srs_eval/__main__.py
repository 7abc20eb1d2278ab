"""`python -m srs_eval`: run one algorithm, or several with ``-m``."""

from srs_eval.run import main

if __name__ == "__main__":
    main()
