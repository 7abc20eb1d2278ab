"""``python -m srs_eval.new``: begin an algorithm, a metric or a source of your own."""

from srs_eval.commands.new import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
