"""Break srs_eval on purpose, and count what happens: see docs/reliability.md.

python tests/faults/campaign.py --minutes 20
python tests/faults/campaign.py --case "csv 2026 17"      one case again
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from multiprocessing.util import get_temp_dir
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "faults"), str(ROOT / "tests")]

from bounded import WAIT_LIMIT, judge  # noqa: E402
from disturbed import AT_ONCE, Scene  # noqa: E402
from verdicts import Case, Found, Tally, Verdict  # noqa: E402

# Cases that start processes, one at a time, each round as many as said here.
PROCESSES = {
    "30 starts at once": (1, Scene.many_on_a_fresh_store),
    "kill: creating the store": (3, Scene.kill_while_the_store_is_created),
    "kill: evaluating": (3, Scene.kill_while_users_are_evaluated),
    "kill: cleaning up": (3, Scene.kill_in_clean_up),
    "two runs in one folder": (2, Scene.two_in_one_folder),
    "output folder removed": (1, Scene.the_folder_vanishes),
    "file size limit": (2, Scene.the_disk_is_full),
    "database locked": (1, Scene.the_database_is_locked),
}
# Cases that are judged in a process with limits: how many a round, and by which function.
INPUTS = {
    "csv": (60, "logs.csv_log"),
    "parquet": (60, "logs.parquet_log"),
    "parquet of equal rows": (1, "logs.equal_rows"),
    "public data set": (20, "logs.public_log"),
    "anki": (40, "logs.anki_log"),
    "run folders": (20, "run_folders.run_folder"),
    "weights": (5, "run_folders.weights"),
    "command lines": (20, "run_folders.command_line"),
}


@dataclass(frozen=True, slots=True)
class Campaign:
    """What is tried, for how many minutes, and where."""

    seed: int
    folder: Path
    minutes: float
    starts: int = AT_ONCE

    def process_cases(self, tally, only=None):
        """Judge cases that start processes, until time is up."""
        references = self.folder / "references"
        for case in [only] if only else self._cases(PROCESSES):
            with tempfile.TemporaryDirectory(dir=self.folder, ignore_cleanup_errors=True) as place:
                scene = Scene(case.random, Path(place), references, self.starts)
                try:
                    verdict = PROCESSES[case.kind][1](scene)
                except Found as found:
                    verdict = found.verdict
            tally.add(case, verdict)

    def input_cases(self, tally, only=None):
        """Judge cases inside of limits, until time is up."""
        folder = self.folder / "inputs"
        # what all cases change is made once, which takes longer than a case may
        made = judge("run_folders.prepare", Case("", 0, 0), folder, WAIT_LIMIT)
        if made.outcome != "accepted":
            raise RuntimeError(f"nothing to change was made: {made.detail}")
        for case in [only] if only else self._cases(INPUTS):
            place = folder / str(case).replace(" ", "_")
            tally.add(case, judge(INPUTS[case.kind][1], case, place))
            shutil.rmtree(place, ignore_errors=True)

    def _cases(self, kinds):
        """Make cases of all kinds in turn until time is up; in the first round, one of each."""
        until = time.monotonic() + 60 * self.minutes
        numbers = {kind: count() for kind in kinds}
        for turn in count():
            for kind, (times, _) in kinds.items():
                for _ in range(times if turn else 1):
                    if time.monotonic() > until:
                        return
                    yield Case(kind, self.seed, next(numbers[kind]))

    def all_cases(self):
        """Judge cases of both sorts side by side."""
        tally = Tally()
        kinds = (self.process_cases, self.input_cases)
        with ThreadPoolExecutor(2) as threads:
            lanes = [threads.submit(cases, tally) for cases in kinds]
        for lane, cases in zip(lanes, kinds, strict=True):
            # What was counted until then is worth a table, too.
            if error := lane.exception():
                told = f"{type(error).__name__}: {error}"
                tally.add(Case(cases.__name__, self.seed, 0), Verdict("traceback", told))
        return tally


def main(words=None):
    """Run the campaign; return 0 only if nothing bad happened."""
    # A shell's background processes ignore Ctrl-C, and so would what is started here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--starts", type=int, default=AT_ONCE, help="how many runs start at once")
    parser.add_argument("--case", help='one case again: "KIND SEED NUMBER"')
    given = parser.parse_args(words)
    get_temp_dir()  # of the server of processes, which outlives the folder
    with tempfile.TemporaryDirectory(prefix="campaign_", ignore_cleanup_errors=True) as place:
        folder = Path(place).resolve()
        # whatever is started keeps its temporary files together
        (folder / "tmp").mkdir()
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder / "tmp")
        campaign = Campaign(given.seed, folder, given.minutes, given.starts)
        if given.case:
            kind, seed, number = given.case.rsplit(" ", 2)
            cases = campaign.input_cases if kind in INPUTS else campaign.process_cases
            cases(tally := Tally(), Case(kind, int(seed), int(number)))
        else:
            tally = campaign.all_cases()
    sys.stdout.write(f"{tally.table()}\n\n{tally.problems()}\n")
    return 1 if tally.bad else 0


if __name__ == "__main__":
    sys.exit(main())
