"""A static site of a leaderboard: tables, models, and comparisons in the browser.

  python -m srs_eval.site leaderboard/ out=site

Open site/index.html, from the folder or from any server.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from srs_eval.commands.cli import Argument, Command, Local, Options
from srs_eval.text.console import counted, facts, say


@dataclass(frozen=True, slots=True, kw_only=True)
class Site(Options):
    """Options of the command."""

    leaderboard: Argument[Path]
    """one leaderboard"""
    out: Local[Path] = Path("site")
    """the folder to write; a site of srs_eval that is there is replaced, and any other folder is
    refused
    """
    title: str = "Leaderboards"
    """heading of the first page"""

    def problems(self) -> Iterable[str]:
        """Return what is wrong with the options together."""
        inside = Path(self.leaderboard or self.out / "_").resolve()
        if Path(self.out).resolve().is_relative_to(inside):
            yield f"out={self.out}: is in the leaderboard itself; name a folder elsewhere"


def build(options: Site) -> int:
    """Write the site."""
    # Heavy: not for --help and for mistakes.
    from tqdm import tqdm

    from srs_eval.site.pages import write_site
    from srs_eval.submit.reading import read_leaderboard
    from srs_eval.submit.registrations import registrations

    boards = read_leaderboard(options.leaderboard)
    counts = {board.name: len(board.submissions) for board in boards}
    with tqdm(
        total=sum(counts.values()), desc="site", unit="submission", leave=False, disable=None
    ) as bar:
        write_site(
            boards,
            options.out,
            title=options.title,
            registered=registrations(options.leaderboard, boards),
            progress=lambda: bar.update(),
        )
    told = {name: counted(count, "submission") for name, count in counts.items()}
    say(facts({**told, "site": str(options.out / "index.html")}))
    return 0


command = Command("python -m srs_eval.site", __doc__, Site, build)
