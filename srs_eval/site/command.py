"""The command line ``python -m srs_eval.site``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from srs_eval.commands.arguments import Words, about_one, carry_out, explained
from srs_eval.errors import ConfigError
from srs_eval.text.console import counted, facts, say

PROGRAM = "python -m srs_eval.site"
KEYS = {
    "out": "the folder to write (by default site); a site of srs_eval that is there is replaced, "
    "and any other folder is refused",
    "title": "heading of the first page (by default Leaderboards)",
}
_HELP = f"""A static site of a leaderboard: tables, models, and comparisons in the browser.

  {PROGRAM} leaderboard/ out=site

Open site/index.html, from the folder or from any server. Options, KEY=VALUE:

{explained(KEYS)}"""


def command(words: Sequence[str]) -> int:
    """Run the command line `words` and return the exit status."""
    return carry_out(
        lambda: _build(about_one(words, KEYS, "leaderboard")),
        words,
        program=PROGRAM,
        help_page=_HELP,
        unwritten="the site",
    )


def _build(asked: Words) -> int:
    # Heavy: not for --help and for mistakes.
    from tqdm import tqdm

    from srs_eval.site.pages import write_site
    from srs_eval.submit.reading import read_leaderboard
    from srs_eval.submit.registrations import registrations

    leaderboard, out = asked.paths[0], asked.path("out") or Path("site")
    if out.resolve().is_relative_to(leaderboard.resolve()):
        raise ConfigError(f"out={out}: is in the leaderboard itself; name a folder elsewhere")
    boards = read_leaderboard(leaderboard)
    with tqdm(
        total=sum(len(board.submissions) for board in boards),
        desc="site",
        unit="submission",
        leave=False,
        disable=None,
    ) as bar:
        write_site(
            boards,
            out,
            title=asked.options.get("title", "Leaderboards"),
            registered=registrations(leaderboard, boards),
            progress=lambda: bar.update(),
        )
    counts = {board.name: counted(len(board.submissions), "submission") for board in boards}
    say(facts({**counts, "site": str(out / "index.html")}))
    return 0
