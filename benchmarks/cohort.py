"""What a whole evaluation of many users costs, from files to summary.json.

    python benchmarks/cohort.py FOLDER users=20,100 command=algo=fsrs6

Makes simulated users of 35,000 reviews each in the layout of anki-revlogs-10k (once; FOLDER
keeps them), runs the command on the first so many of them, and prints what each run took. The
arguments in ``command=`` are added to the command. CPU time is that of the whole process and its
workers, start-up included; the last lines are what each further user adds, and a million users.
Memory is the most a process ever held. Ten thousand users, whose logs are 500 different ones:

    python benchmarks/cohort.py FOLDER users=100,10000 distinct=500 command=compute=processes
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from benchmark import Numbers, Words, benchmark, table
from measure import cost_of, in_process

from srs_eval.data.synthetic import SyntheticUsers

REVIEWS = 35_000
COMMAND = (
    *("data=revlogs_10k", "panel=quick", "tracking=none"),
    *("compute=serial", "figures=false", "curves_per_user=0"),
)


def make_cohort(
    folder: Path, users: int, reviews: int = REVIEWS, distinct: int | None = None
) -> None:
    """Write the logs of simulated users as ``revlogs/user_id=N/data.parquet``, N from 1.

    Those that are there already are kept. Users beyond `distinct` have the logs of earlier ones.
    """
    different = min(users, distinct or users)
    source = SyntheticUsers(users=1_000_000, seed=2026, size_scale=1.0, max_reviews=reviews)
    every = map(source.read, source.users())
    logs = (log for log in every if len(log) == reviews)  # others study too little to fill one
    for number in range(1, users + 1):
        file = folder / "revlogs" / f"user_id={number}" / "data.parquet"
        log = next(logs) if number <= different else None
        if file.exists():
            continue
        file.parent.mkdir(parents=True)
        if log is None:
            source_of = f"user_id={1 + (number - 1) % different}"
            os.link(folder / "revlogs" / source_of / file.name, file)
            continue
        columns = {
            "card_id": log.card,
            "day_offset": log.day,
            "rating": log.rating,
            "state": log.state,
            "duration": pa.array(log.duration_ms).cast(pa.int64(), safe=False),
            "elapsed_days": log.elapsed_days,
            "elapsed_seconds": pa.array(log.elapsed_seconds).cast(pa.int64(), safe=False),
        }
        pq.write_table(pa.table(columns), file)


@benchmark("cohort")
def main(
    folder: Path,
    users: Numbers = (20, 100),
    distinct: int | None = None,
    command: Words = ("algo=fsrs6",),
) -> str:
    """Return a row for each number of users, and one for a further user."""
    sizes = sorted(users)
    in_process(make_cohort, folder, sizes[-1], REVIEWS, distinct)
    replaced = {word.partition("=")[0] for word in command}
    words = [*(word for word in COMMAND if word.partition("=")[0] not in replaced), *command]
    costs = {}
    for size in (1, *sizes):  # the first compiles the kernels
        with tempfile.TemporaryDirectory() as output:
            place = (f"data.path='{folder}'", f"data.users='1-{size}'", f"hydra.run.dir={output}")
            costs[size] = cost_of([*words, *place])
    rows = []
    for size in sizes:
        cost = costs[size]
        times = f"{cost.cpu:.2f} s", f"{cost.wall:.2f} s"
        rows.append((f"{size:,} users", *times, f"{cost.peak_bytes / 1e6:.0f} MB"))
    if len(sizes) > 1:
        first, last, further = costs[sizes[0]], costs[sizes[-1]], sizes[-1] - sizes[0]
        cpu, wall = (last.cpu - first.cpu) / further, (last.wall - first.wall) / further
        memory = f"{(last.peak_bytes - first.peak_bytes) / further / 1e6:.2f} MB"
        rows.append(("a further user", f"{cpu * 1e3:.1f} ms", f"{wall * 1e3:.1f} ms", memory))
        rows.append(("a million users", f"{cpu / 0.0036:.1f} h", f"{wall / 0.0036:.1f} h", ""))
    return table(["", "CPU", "wall", "peak memory"], rows)
