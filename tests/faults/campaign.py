"""Break srs_eval on purpose, and count what happens: see docs/reliability.md.

python tests/faults/campaign.py --minutes 20
python tests/faults/campaign.py --case "csv 2026 17"      one case again
"""

import argparse
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
from functools import partial
from itertools import count
from multiprocessing.util import get_temp_dir
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / name) for name in ("faults", "runs", "")]

import logs  # noqa: E402
import pandas as pd  # noqa: E402
from judging import BAD, judged, judged_within_limits  # noqa: E402
from test_kills import end_and_repeat  # noqa: E402

# How many cases of each kind a round has, and what tries one.
KINDS = {
    "kill": (1, end_and_repeat),
    "csv": (60, partial(logs.table_log, "csv")),
    "parquet": (60, partial(logs.table_log, "parquet")),
    "anki": (40, logs.anki_log),
}


def drawn(seed, minutes):
    """Yield cases of all kinds in turn until time is up; in the first round, one of each.

    A case is its kind, seed and number, which say all about it.
    """
    until = time.monotonic() + 60 * minutes
    numbers = {kind: count() for kind in KINDS}
    for turn in count():
        for kind, (times, _) in KINDS.items():
            for _ in range(times if turn else 1):
                if time.monotonic() > until:
                    return
                yield f"{kind} {seed} {next(numbers[kind])}"


def tried(case, folder):
    """Try a case in a folder of its own; return its outcome, and what shows it if it is bad."""
    kind, place = case.rsplit(" ", 2)[0], folder / case.replace(" ", "_")
    place.mkdir()
    judge = judged if kind == "kill" else judged_within_limits
    try:
        return judge(KINDS[kind][1], Random(case), place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def report(found):
    """Tell of cases with their outcomes: counts, and how to repeat each that is bad."""
    table = pd.DataFrame(found, columns=["case", "outcome", "why"])
    counts = pd.crosstab(table["case"].str.rsplit(" ", n=2).str[0], table["outcome"])
    again = "    python tests/faults/campaign.py --case"
    bad = [f'{end}: {why}\n{again} "{case}"' for case, end, why in found if end in BAD]
    return "\n".join([counts.to_string(), "", *bad, ""])


def main(words=None):
    """Run the campaign; return 0 only if nothing bad happened."""
    # A shell's background processes ignore Ctrl-C, and so would what is started here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--case", help='one case again: "KIND SEED NUMBER"')
    options = parser.parse_args(words)
    multiprocessing.set_forkserver_preload(["__main__", "srs_eval.runs.job"])
    get_temp_dir()  # of the server of processes, which outlives the folder
    with tempfile.TemporaryDirectory(prefix="campaign_", ignore_cleanup_errors=True) as place:
        folder = Path(place).resolve()
        # whatever is started keeps its temporary files together
        (folder / "tmp").mkdir()
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder / "tmp")
        cases = [options.case] if options.case else drawn(options.seed, options.minutes)
        found = [(case, *tried(case, folder)) for case in cases]
    sys.stdout.write(report(found))
    return int(any(outcome in BAD for _, outcome, _ in found))


if __name__ == "__main__":
    sys.exit(main())
