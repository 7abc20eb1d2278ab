"""``python -m srs_eval.export``: hand fitted parameters to a scheduler."""

from srs_eval.commands.export import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
