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
from random import Random

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / name) for name in ("faults", "runs", "")]

import kills  # noqa: E402
import logs  # noqa: E402
import pandas as pd  # noqa: E402
import run_folders  # noqa: E402
from judging import BAD, OUTCOMES, WAIT_LIMIT, judged, judged_within_limits  # noqa: E402
from tabulate import tabulate  # noqa: E402

# Cases that start processes, one at a time: how many a round, and the function.
PROCESSES = {"kill": (1, kills.killed)}
# Cases that are judged in a process with limits.
INPUTS = {
    "csv": (60, logs.csv_log),
    "parquet": (60, logs.parquet_log),
    "anki": (40, logs.anki_log),
    "run folders": (20, run_folders.run_folder),
}


@dataclass(frozen=True, slots=True)
class Case:
    """One case, which its kind, seed and number say all about."""

    kind: str
    seed: int
    number: int

    def __str__(self):
        return f"{self.kind} {self.seed} {self.number}"

    @property
    def random(self):
        """A generator that belongs to this case alone."""
        return Random(str(self))


def drawn(kinds, seed, minutes):
    """Yield cases of all kinds in turn until time is up; in the first round, one of each."""
    until = time.monotonic() + 60 * minutes
    numbers = {kind: count() for kind in kinds}
    for turn in count():
        for kind, (times, _) in kinds.items():
            for _ in range(times if turn else 1):
                if time.monotonic() > until:
                    return
                yield Case(kind, seed, next(numbers[kind]))


def of_processes(cases, folder):
    """Judge cases that start processes."""
    for case in cases:
        with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as place:
            yield case, *judged(PROCESSES[case.kind][1], case.random, Path(place))


def of_inputs(cases, folder):
    """Judge cases inside of limits."""
    # what all cases change is made once, which takes longer than a case may
    made, why = judged_within_limits(run_folders.prepare, None, folder, WAIT_LIMIT)
    if made != "accepted":
        raise RuntimeError(f"nothing to change was made: {why}")
    for case in cases:
        place = folder / str(case).replace(" ", "_")
        yield case, *judged_within_limits(INPUTS[case.kind][1], case.random, place)
        shutil.rmtree(place, ignore_errors=True)


def report(found):
    """Tell of cases with their outcomes: counts, and how to repeat each that is bad."""
    frame = pd.DataFrame([(case.kind, outcome) for case, outcome, _ in found], columns=[*"ko"])
    counts = pd.crosstab(frame["k"], frame["o"]).reindex(columns=OUTCOMES, fill_value=0)
    counts.insert(0, "tried", counts.sum(axis=1))
    counts.loc["all"] = counts.sum()
    table = tabulate(counts, ["kind", *counts.columns], "github")
    again = "    python tests/faults/campaign.py --case"
    bad = [f'{end}: {why}\n{again} "{case}"' for case, end, why in found if end in BAD]
    return "\n".join([table, "", *bad, ""])


def main(words=None):
    """Run the campaign; return 0 only if nothing bad happened."""
    # A shell's background processes ignore Ctrl-C, and so would what is started here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--case", help='one case again: "KIND SEED NUMBER"')
    given = parser.parse_args(words)
    found = []

    def carry_out(judge, kinds, folder):
        folder.mkdir()
        cases = drawn(kinds, given.seed, given.minutes)
        if given.case:
            kind, seed, number = given.case.rsplit(" ", 2)
            cases = [Case(kind, int(seed), int(number))] if kind in kinds else []
        if cases:
            found.extend(judge(cases, folder))

    get_temp_dir()  # of the server of processes, which outlives the folder
    with tempfile.TemporaryDirectory(prefix="campaign_", ignore_cleanup_errors=True) as place:
        folder = Path(place).resolve()
        # whatever is started keeps its temporary files together
        (folder / "tmp").mkdir()
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder / "tmp")
        lanes = {"processes": (of_processes, PROCESSES), "inputs": (of_inputs, INPUTS)}
        with ThreadPoolExecutor(2) as threads:
            ended = {
                name: threads.submit(judged, carry_out, *lane, folder / name)
                for name, lane in lanes.items()
            }
        # What was counted until a lane broke down is worth a table, too.
        for name, lane in ended.items():
            if lane.result()[1]:
                found.append((Case(name, given.seed, 0), *lane.result()))
    sys.stdout.write(report(found))
    return int(any(outcome in BAD for _, outcome, _ in found))


if __name__ == "__main__":
    sys.exit(main())
