"""Seed a leaderboard: run every algorithm, submit, check, accept, and build the site.

  python experiments/arena/seed.py out=arena
  python experiments/arena/seed.py out=arena users=8 algo=avg,fsrs6,hlr network_users=0

It writes into the folder out= and nowhere else.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt

from srs_eval.commands.cli import Command, Local, Options
from srs_eval.comparison.identical import find_duplicates
from srs_eval.config.option_files import described, options
from srs_eval.config.suggestions import unknown_options
from srs_eval.errors import SrsEvalError
from srs_eval.results.folder import is_run
from srs_eval.results.published import read_published
from srs_eval.results.run import load_run
from srs_eval.run.jobs import read_outcomes
from srs_eval.site.command import command as site
from srs_eval.submit.command import command as submit
from srs_eval.submit.record import read_record
from srs_eval.submit.writing import submit_published, submit_run
from srs_eval.text.console import say, shell

# These need PyTorch, and are slow.
NETWORKS = ("gru", "gru_curves", "gru_p", "lstm_curves", "nn17", "transformer")
_PUBLISHED, _OF_LOGS = "published-", "-logs"
_GIVEN = {
    "authors": ["srs_eval"],
    "licence": "MIT",
    "tuned_on": "What docs/algorithms.md of srs_eval states for the algorithm.",
}
_PRETRAINED = {
    "description": "Other users, whom docs/algorithms.md of srs_eval describes for the algorithm.",
    "users": [],
}
_OF_ALL = (
    "tracking=none",
    "figures=false",
    "resume=true",
)


@dataclass(frozen=True, slots=True)
class Board:
    """Runs on the same reviews: a folder of runs, algorithms, the words of the data."""

    folder: Path
    algorithms: Sequence[str]
    data: Sequence[str]
    ending: str = ""  # of the names of its submissions


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed(Options):
    """Options of the command."""

    out: Local[Path]
    """folder of everything that is written"""
    users: Annotated[int, Gt(0)] = 20
    """simulated users of the algorithms without PyTorch"""
    network_users: Annotated[int, Ge(0)] = 2
    """simulated users of the networks, with fsrs6 and avg beside them; 0: none"""
    max_reviews: Annotated[int, Gt(0)] = 1000
    """reviews of each simulated user"""
    algo: tuple[str, ...] = ()
    """some algorithms, separated by commas (all)"""
    logs: Path | None = None
    """folder of real logs in the layout of anki-revlogs-10k, for a board of their own"""
    first: Annotated[int, Gt(0)] = 20
    """how many users of the logs"""
    published: Path | None = None
    """published scores of each user, a file of the public srs-benchmark's results"""
    mark: Literal["reported", "verified"] = "reported"
    """reported, or verified: run again and compare before it is accepted"""

    def problems(self) -> Iterable[str]:
        """Return the algorithms that there are not."""
        return unknown_options("algo", self.algo)

    def boards(self) -> Iterator[Board]:
        """Return the boards that are asked for."""
        wanted = self.algo or options("algo")
        usual = [name for name in wanted if name not in NETWORKS]
        networks = [name for name in wanted if name in NETWORKS]
        cohort = ["data=synthetic", f"data.max_reviews={self.max_reviews}"]
        few = self.network_users
        if usual:
            yield Board(self.out / "runs", usual, [*cohort, f"data.users={self.users}"])
        if networks and few:
            beside = [*networks, "fsrs6", "avg"]
            data = [*cohort, f"data.users={few}"]
            yield Board(self.out / "network_runs", beside, data, f"-{few}-users")
        real = [name for name in usual if name != "oracle"]
        if self.logs and real:
            data = ["data=revlogs_10k", f"data.path={self.logs}", f"data.first={self.first}"]
            yield Board(self.out / "log_runs", real, data, _OF_LOGS)

    def mark_of(self, name: str) -> str:
        """Return the mark that a submission gets; real logs are not run again."""
        if name.startswith(_PUBLISHED):
            return "published"
        return "reported" if name.endswith(_OF_LOGS) else self.mark


def seed(asked: Seed) -> int:
    """Run, submit, check, accept, and build the site."""
    leaderboard = asked.out / "leaderboard"
    for board in asked.boards():
        _submit(board, leaderboard)
    if asked.published:
        _submit_published(asked.published, leaderboard)
    if status := submit(["check", str(leaderboard)]):
        return status
    record = read_record(leaderboard).submissions
    by_mark: dict[str, list[Path]] = {}
    for folder in sorted(leaderboard.iterdir()):
        if folder.is_dir() and folder.name not in record:
            by_mark.setdefault(asked.mark_of(folder.name), []).append(folder)
    for mark, folders in by_mark.items():
        if status := submit(["accept", *map(str, folders), f"mark={mark}", "note=seed"]):
            return status
    return site([str(leaderboard), f"out={asked.out / 'site'}"])


def _submit(board: Board, leaderboard: Path) -> None:
    """Run the algorithms of a board, and submit the runs that have finished."""
    words = ["-m", f"algo={','.join(board.algorithms)}", *board.data, *_OF_ALL]
    typed = [sys.executable, "-m", "srs_eval", *words, f"hydra.sweep.dir={board.folder}"]
    say(shell(["python", *typed[1:]]))
    status = subprocess.run(typed, check=False).returncode
    if status not in (0, 1, 2):  # 1 and 2: an algorithm may need a package that is not installed
        raise SrsEvalError(f"stopped with exit status {status}; the same command continues")
    texts, runs = described("algo"), []
    for folder, outcome in read_outcomes(board.folder):
        if outcome.status == "ok" and is_run(folder):
            runs.append(load_run(folder))
        else:
            say(f"left out  {outcome.label}: {outcome.message}")
    twins = find_duplicates(runs, list(runs[0].rows)) if runs else []
    for twin in twins:  # a leaderboard has a model once
        say(f"left out  {twin.in_words}")
    for run in runs:
        if not any(twin.run is run for twin in twins):
            algorithm = run.facts.algo
            description = texts[algorithm].partition("\n")[0]
            given: dict[str, Any] = {**_GIVEN, "model": algorithm, "description": description}
            if "pretrained" in run.traits:
                given["pretrained_on"] = _PRETRAINED
            submit_run(run.place, leaderboard / f"{algorithm}{board.ending}", given)


def _submit_published(file: Path, leaderboard: Path) -> None:
    """Submit the published scores of each model; their data and predictions are not needed."""
    given = {"description": "Scores published by another project.", "authors": ["srs-benchmark"]}
    given |= {"licence": "see the project", "tuned_on": "see the project"}
    for run in read_published(file):
        name = "".join(c if c.isalnum() or c in "._-" else "-" for c in run.name)
        submit_published(file, run.name, leaderboard / f"{_PUBLISHED}{name}"[:60], given)


command = Command("python experiments/arena/seed.py", __doc__, Seed, seed)

if __name__ == "__main__":
    sys.exit(command(sys.argv[1:]))
