"""``python -m srs_eval.site``: a static site of leaderboards."""

from srs_eval.commands.cli import main

if __name__ == "__main__":
    main("site.command")
