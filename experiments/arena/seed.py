"""Seed a leaderboard: run every algorithm, submit, check, accept, and build the site.

``python experiments/arena/seed.py out=arena`` writes into the folder ``arena`` and nowhere else.
The options are in the README beside it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from srs_eval.commands.arguments import carry_out, explained, sort_words
from srs_eval.comparison.identical import find_duplicates
from srs_eval.comparison.published import read_published
from srs_eval.config.option_files import described, options
from srs_eval.config.suggestions import unknown_options
from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.experiment.jobs import read_outcomes
from srs_eval.results.folder import is_run
from srs_eval.results.run import load_run
from srs_eval.site.command import command as site
from srs_eval.submit.command import command as submit
from srs_eval.submit.record import read_record
from srs_eval.submit.writing import submit_published, submit_run
from srs_eval.text.console import say, shell

PROGRAM = "python experiments/arena/seed.py"
# These need PyTorch, and are slow.
NETWORKS = ("gru", "gru_curves", "gru_p", "lstm_curves", "lstm_published", "nn17", "transformer")
KEYS = {
    "out": "folder of everything that is written",
    "users": "simulated users of the algorithms without PyTorch (20)",
    "network_users": "simulated users of the networks, with fsrs6 and avg beside them (2); 0: none",
    "max_reviews": "reviews of each simulated user (1000)",
    "algo": "some algorithms, separated by commas (all)",
    "logs": "folder of real logs in the layout of anki-revlogs-10k, for a board of their own",
    "first": "how many users of the logs (20)",
    "published": "published scores of each user, a file of the public srs-benchmark's results",
    "mark": "reported, or verified: run again and compare before it is accepted",
}
_HELP = f"""Seed a leaderboard with every algorithm of srs_eval.

  {PROGRAM} out=arena
  {PROGRAM} out=arena users=8 algo=avg,fsrs6,hlr network_users=0

"""
_COUNTS = ("users", "network_users", "max_reviews", "first")
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


def main(words: Sequence[str]) -> int:
    """Run the command line `words` and return the exit status."""
    return carry_out(
        lambda: _seed(words), words, program=PROGRAM, help_page=_HELP + explained(KEYS)
    )


def _seed(words: Sequence[str]) -> int:
    asked = sort_words(words, KEYS, choices={"mark": ("reported", "verified")})
    out, published = asked.path("out"), asked.path("published")
    problems = [*asked.problems, *(f"{path}: write KEY=VALUE" for path in asked.paths)]
    problems += ["out=FOLDER is missing"] if out is None else []
    if problems or out is None:
        raise ConfigError(*problems)
    leaderboard = out / "leaderboard"
    for board in _boards(asked.options, out):
        _submit(board, leaderboard)
    if published is not None:
        _submit_published(published, leaderboard)
    if status := submit(["check", str(leaderboard)]):
        return status
    record = read_record(leaderboard).submissions
    by_mark: dict[str, list[Path]] = {}
    for folder in sorted(leaderboard.iterdir()):
        if folder.is_dir() and folder.name not in record:
            by_mark.setdefault(_mark(folder.name, asked.options), []).append(folder)
    for mark, folders in by_mark.items():
        if status := submit(["accept", *map(str, folders), f"mark={mark}", "note=seed"]):
            return status
    return site([str(leaderboard), f"out={out / 'site'}"])


def _mark(name: str, given: Mapping[str, str]) -> str:
    """Return the mark that a submission gets; real logs are not run again."""
    if name.startswith(_PUBLISHED):
        return "published"
    return "reported" if name.endswith(_OF_LOGS) else given.get("mark", "reported")


def _boards(given: Mapping[str, str], out: Path) -> list[Board]:
    """Return the boards that are asked for."""
    wanted = given["algo"].split(",") if "algo" in given else options("algo")
    counts = [f"{key}={given[key]}" for key in _COUNTS if not given.get(key, "1").isdigit()]
    problems = [f"{word}: expected a whole number" for word in counts]
    if problems := [*unknown_options("algo", wanted), *problems]:
        raise ConfigError(*problems)
    usual = [name for name in wanted if name not in NETWORKS]
    networks = [name for name in wanted if name in NETWORKS]
    cohort = ["data=synthetic", f"data.max_reviews={given.get('max_reviews', '1000')}"]
    few = given.get("network_users", "2")
    boards = [Board(out / "runs", usual, [*cohort, f"data.users={given.get('users', '20')}"])]
    if networks and few != "0":
        beside = [*networks, "fsrs6", "avg"]
        boards.append(
            Board(out / "network_runs", beside, [*cohort, f"data.users={few}"], f"-{few}-users")
        )
    if "logs" in given:
        data = [
            "data=revlogs_10k",
            f"data.path={given['logs']}",
            f"data.first={given.get('first', '20')}",
        ]
        real = [name for name in usual if name != "oracle"]
        boards.append(Board(out / "log_runs", real, data, _OF_LOGS))
    return [board for board in boards if board.algorithms]


def _submit(board: Board, leaderboard: Path) -> None:
    """Run the algorithms of a board, and submit the runs that have finished."""
    words = ["-m", f"algo={','.join(board.algorithms)}", *board.data, *_OF_ALL]
    command = [sys.executable, "-m", "srs_eval", *words, f"hydra.sweep.dir={board.folder}"]
    say(shell(["python", *command[1:]]))
    status = subprocess.run(command, check=False).returncode
    if status not in (0, 1, 2):  # 1 and 2: an algorithm may need a package that is not installed
        raise SrsEvalError(f"stopped with exit status {status}; the same command continues")
    texts, runs = described("algo"), []
    for folder, outcome in read_outcomes(board.folder, is_sweep=True):
        if outcome.status == "ok" and is_run(folder):
            runs.append(load_run(folder))
        else:
            say(f"left out  {outcome.label}: {outcome.message}")
    twins = find_duplicates(runs, list(runs[0].rows)) if runs else []
    for twin in twins:  # a leaderboard has a model once
        say(f"left out  {twin.in_words}")
    for run in runs:
        if not any(twin.run is run for twin in twins):
            algorithm = str(run.summary["algo"])
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
