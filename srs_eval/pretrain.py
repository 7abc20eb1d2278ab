"""``python -m srs_eval.pretrain``: let an algorithm learn from other users once."""

from srs_eval.commands.cli import main

if __name__ == "__main__":
    main("commands.pretrain")
