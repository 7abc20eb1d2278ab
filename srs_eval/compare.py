"""``python -m srs_eval.compare``: compare finished runs."""

from srs_eval.commands.compare import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
