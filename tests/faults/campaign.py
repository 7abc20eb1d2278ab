"""Break srs_eval on purpose, and count what happens: see docs/reliability.md.

python tests/faults/campaign.py --minutes 20
python tests/faults/campaign.py --case "csv 2026 17"      one case again
"""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "faults"), str(ROOT / "tests")]

from bounded import Worker  # noqa: E402
from disturbed import (  # noqa: E402
    AT_ONCE,
    References,
    kill_in_clean_up,
    kill_while_the_store_is_created,
    kill_while_users_are_evaluated,
    many_on_a_fresh_store,
    the_database_is_locked,
    the_disk_is_full,
    the_folder_vanishes,
    two_in_one_folder,
)
from verdicts import Case, Found, Tally, Verdict  # noqa: E402

Judge = Callable[[Random, Path, References], Verdict]

# Cases that start processes, one at a time, each round as many as said here.
PROCESSES: Mapping[str, tuple[int, Judge]] = {
    "30 starts at once": (1, many_on_a_fresh_store),
    "kill: creating the store": (3, kill_while_the_store_is_created),
    "kill: evaluating": (3, kill_while_users_are_evaluated),
    "kill: cleaning up": (3, kill_in_clean_up),
    "two runs in one folder": (2, two_in_one_folder),
    "output folder removed": (1, the_folder_vanishes),
    "file size limit": (2, the_disk_is_full),
    "database locked": (1, the_database_is_locked),
}
# Cases that are judged inside a worker process: how many a round, and by which function.
INPUTS: Mapping[str, tuple[int, str]] = {
    "csv": (60, "logs.csv_log"),
    "parquet": (60, "logs.parquet_log"),
    "parquet of equal rows": (1, "logs.equal_rows"),
    "public data set": (20, "logs.public_log"),
    "anki": (40, "anki_logs.anki_log"),
    "run folders": (20, "run_folders.run_folder"),
    "weights": (5, "run_folders.weights"),
    "command lines": (20, "run_folders.command_line"),
}
_BEGIN, _END = "<!-- campaign -->", "<!-- /campaign -->"


@dataclass(frozen=True, slots=True)
class Campaign:
    """What is tried, for how many minutes, and where."""

    seed: int
    folder: Path
    minutes: float
    starts: int = AT_ONCE

    def process_cases(self, tally: Tally) -> None:
        """Judge cases that start processes, until time is up."""
        references = References(self.folder / "references")
        for case in self._cases({kind: times for kind, (times, _) in PROCESSES.items()}):
            tally.add(case, self.judge(case, references))

    def input_cases(self, tally: Tally) -> None:
        """Judge cases in a worker, until time is up."""
        with Worker(self.folder / "inputs") as worker:
            for case in self._cases({kind: times for kind, (times, _) in INPUTS.items()}):
                tally.add(case, worker.judge(INPUTS[case.kind][1], case))
                shutil.rmtree(self.folder / "inputs" / case.name, ignore_errors=True)

    def _cases(self, times: Mapping[str, int]) -> Iterator[Case]:
        """Make cases of all kinds in turn until time is up; in the first round, one of each."""
        until = time.monotonic() + 60 * self.minutes
        numbers = {kind: count() for kind in times}
        for turn in count():
            for kind in times:
                for _ in range(times[kind] if turn else 1):
                    if time.monotonic() > until:
                        return
                    yield Case(kind, self.seed, next(numbers[kind]))

    def judge(self, case: Case, references: References) -> Verdict:
        """Judge one case that starts processes."""
        judge = PROCESSES[case.kind][1]
        if judge is many_on_a_fresh_store:
            judge = partial(many_on_a_fresh_store, count=self.starts)
        with tempfile.TemporaryDirectory(dir=self.folder, ignore_cleanup_errors=True) as place:
            try:
                return judge(case.random, Path(place), references)
            except Found as found:
                return found.verdict

    def once(self, case: Case) -> Verdict:
        """Judge one case of any kind."""
        if case.kind in INPUTS:
            with Worker(self.folder / "inputs") as worker:
                return worker.judge(INPUTS[case.kind][1], case)
        return self.judge(case, References(self.folder / "references"))

    def all_cases(self) -> Tally:
        """Judge cases of both sorts side by side."""
        tally = Tally()
        judges = (self.process_cases, self.input_cases)
        with ThreadPoolExecutor(2) as threads:
            lanes = [threads.submit(judge, tally) for judge in judges]
        for lane, judge in zip(lanes, judges, strict=True):
            # What was counted until then is worth a table, too.
            if error := lane.exception():
                told = f"{type(error).__name__}: {error}"
                tally.add(Case(judge.__name__, self.seed, 0), Verdict("traceback", told))
        return tally


def main(words: Sequence[str] | None = None) -> int:
    """Run the campaign; return 0 only if nothing bad happened."""
    # A shell's background processes ignore Ctrl-C, and so would what is started here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    given = _parser().parse_args(words)
    with tempfile.TemporaryDirectory(prefix="campaign_", ignore_cleanup_errors=True) as place:
        folder = Path(place).resolve()
        _own_temporary_folder(folder)
        campaign = Campaign(given.seed, folder, given.minutes, given.starts)
        if given.case:
            kind, seed, number = given.case.rsplit(" ", 2)
            case = Case(kind, int(seed), int(number))
            tally = Tally()
            tally.add(case, campaign.once(case))
        else:
            tally = campaign.all_cases()
    sys.stdout.write(f"{tally.table()}\n\n{tally.problems()}\n")
    if given.write:
        _write(given.write, tally, given)
    return 1 if tally.bad else 0


def _own_temporary_folder(folder: Path) -> None:
    """Let everything that is started keep its temporary files together."""
    own = folder / "tmp"
    own.mkdir()
    os.environ["TMPDIR"] = str(own)
    tempfile.tempdir = str(own)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--starts", type=int, default=AT_ONCE, help="how many runs start at once")
    parser.add_argument("--case", help='one case again: "KIND SEED NUMBER"')
    parser.add_argument("--write", type=Path, help="page that gets the table between its markers")
    return parser


def _write(page: Path, tally: Tally, given: argparse.Namespace) -> None:
    """Write the table and its command into a page."""
    git = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    words = ["python", "tests/faults/campaign.py", "--minutes", f"{given.minutes:g}"]
    words += ["--seed", str(given.seed), "--starts", str(given.starts)]
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    lines = [
        f"`{shlex.join(words)}` at commit {commit or 'unknown'}, Python "
        f"{platform.python_version()}, {os.cpu_count()} processors:",
        "",
        tally.table(),
    ]
    if tally.bad:
        lines += ["", "```text", tally.problems(), "```"]
    text = "\n".join([f"{before}{_BEGIN}", *lines, f"{_END}{after}"])
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
